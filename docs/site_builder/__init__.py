"""What ``make docs`` makes itself: the reference, the course, the gallery, their figures and notebooks.

Nothing here is installed with dither; ``conf.py`` imports it, and so do the tests of the site.
"""
