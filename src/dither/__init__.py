from dither.guarantees import *
from dither.mechanisms import *
from dither.neighbors import *
