/* The moving figures of the site: sliders and SVG, nothing else. Without this script the pictures of the build stay. */
"use strict";
(function () {
  const NS = "http://www.w3.org/2000/svg";
  const COLORS = ["#2c7fb8", "#d95f02", "#1b9e77", "#b05fa8"];
  const L = 48, R = 16, B = 40;

  const element = (tag, attributes, text) => {
    const node = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const number = (value, digits = 3) => Number(value.toPrecision(digits)).toString();
  const percent = (value) => (100 * value).toPrecision(3) + " %";
  const range = (from, to, count) => Array.from({ length: count }, (_, i) => from + ((to - from) * i) / (count - 1));

  /* erfc to about 1e-7 (Abramowitz and Stegun 7.1.26), enough for a picture */
  const erfc = (x) => {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    const value = p * Math.exp(-x * x);
    return x >= 0 ? value : 2 - value;
  };
  const phi = (x) => erfc(-x / Math.SQRT2) / 2;
  const gaussianDelta = (epsilon, ratio) =>
    phi(1 / (2 * ratio) - epsilon * ratio) - Math.exp(epsilon) * phi(-1 / (2 * ratio) - epsilon * ratio);

  const localAt = (values, k, low, high) => {
    const middle = (values.length + 1) / 2 - 1;
    const at = (i) => (i < 0 ? low : i >= values.length ? high : values[i]);
    let largest = 0;
    for (let t = 0; t <= k + 1; t++) largest = Math.max(largest, at(middle + t) - at(middle + t - k - 1));
    return largest;
  };

  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const running = (values) => { let total = 0; return values.map((v) => (total += v)); };
  /* a continuous increasing function is zero between low and high */
  const root = (f, low, high) => {
    for (let i = 0; i < 200; i++) {
      const middle = (low + high) / 2;
      if (f(middle) < 0) low = middle;
      else high = middle;
    }
    return high;
  };

  /* Theorem 26: what the density on [0, upper] is divided by, the least scale, and the loss of another scale */
  const boundedMass = (q, b, upper) => 1 - (Math.exp(-q / b) + Math.exp(-(upper - q) / b)) / 2;
  const boundedGrowth = (b, width, upper) => Math.log(boundedMass(width, b, upper) / boundedMass(0, b, upper));
  const boundedScale = (width, epsilon, upper, delta) => {
    const excess = (b) => b * (epsilon - boundedGrowth(b, width, upper) - Math.log1p(-delta)) - width;
    let high = width / epsilon;
    while (excess(high) < 0) high *= 2;
    return root(excess, (1e-9 * width) / epsilon, high);
  };
  const boundedLoss = (b, width, upper) => width / b + boundedGrowth(b, width, upper);

  /* Theorems 36 and 37 for D = C = p = 1 and ε = 1: the printed terms of (11) and the costs, after 1, ..., steps steps */
  const privateDescent = (rho, kappa, steps) => {
    const gamma = Array.from({ length: steps }, (_, h) => (1 + h) ** -rho), total = running(gamma);
    const theta = gamma.map((g, h) => (2 * total[h]) / g / (1 + h) ** kappa);
    return {
      A1: total.map((t) => 1 / t),
      A2: running(gamma.map((g) => g * g)).map((v, h) => v / total[h]),
      A3: running(gamma.map((g, h) => (g * theta[h]) ** 2)).map((v, h) => v / total[h]),
      theorem: gamma.map((_, h) => (1 + h) ** kappa),
      composed: running(theta.map((t) => 2 / t)),
    };
  };

  /* P(z + lead is the largest of so many), z and the others Laplace of scale 1 */
  const laplaceWins = (lead, others) => {
    const cdf = (z) => (z < 0 ? Math.exp(z) / 2 : 1 - Math.exp(-z) / 2), h = 0.01;
    let total = 0;
    for (const [from, to] of [[-lead - 30, -lead], [-lead, 0], [0, 30]]) {
      const n = 2 * Math.max(1, Math.ceil((to - from) / h / 2));
      for (let i = 0; i <= n && to > from; i++) {
        const z = from + ((to - from) * i) / n, weight = i === 0 || i === n ? 1 : i % 2 ? 4 : 2;
        total += ((weight * (to - from)) / n / 3) * (Math.exp(-Math.abs(z)) / 2) * cdf(z + lead) ** others;
      }
    }
    return total;
  };

  /* the mean of a Pareto law with exponent alpha: bias, sampling and noise of the mean of n values clipped to [1, c] */
  const paretoParts = (alpha, c, n, epsilon) => {
    const mean = (alpha - c ** (1 - alpha)) / (alpha - 1);
    const square = Math.abs(alpha - 2) < 1e-9 ? 1 + 2 * Math.log(c) : (alpha * (c ** (2 - alpha) - 1)) / (2 - alpha) + c ** (2 - alpha);
    const bias = alpha / (alpha - 1) - mean, noise = (Math.SQRT2 * (c - 1)) / (n * epsilon);
    return { bias, noise, total: Math.sqrt(bias ** 2 + noise ** 2 + Math.max(0, square - mean ** 2) / n) };
  };

  /* P(the majority of k answers is right), each right with probability p, ties by a coin */
  const majority = (k, p) => {
    let term = k * Math.log1p(-p), total = 0;
    for (let i = 0; i <= k; i++) {
      if (2 * i >= k) total += Math.exp(term) * (2 * i === k ? 0.5 : 1);
      term += Math.log((k - i) / (i + 1)) + Math.log(p / (1 - p));
    }
    return Math.min(1, total);
  };

  /* the least w with P(|noise| > w) at most 0.05, for whole-number Laplace noise of scale 1/epsilon */
  const countError = (epsilon) => Math.max(0, Math.ceil(Math.log((0.05 * (1 + Math.exp(-epsilon))) / 2) / -epsilon - 1 - 1e-12));

  /* document 1: the utility −|mean − l| on [0, 1] really costs this */
  const meanCost = (n, epsilon) => {
    const rate = (n * epsilon) / 2, mass = (m) => 2 - Math.exp(-rate * m) - Math.exp(-rate * (1 - m));
    return epsilon / 2 + Math.log(mass(1 / n) / mass(0));
  };

  /* the parts of a line between y0 and y1: a line that leaves the picture ends at its edge */
  const pieces = (line, y0, y1) => {
    const result = [];
    let open = null;
    line.x.forEach((x, i) => {
      const y = line.y[i], inside = y >= y0 && y <= y1;
      if (i > 0 && inside !== (line.y[i - 1] >= y0 && line.y[i - 1] <= y1)) {
        const before = line.y[i - 1], edge = (inside ? before : y) > y1 ? y1 : y0;
        const crossing = [line.x[i - 1] + ((x - line.x[i - 1]) * (edge - before)) / (y - before), edge];
        if (inside) result.push((open = [crossing]));
        else { open.push(crossing); open = null; }
      }
      if (!inside) return;
      if (open === null) result.push((open = []));
      open.push([x, y]);
    });
    return result;
  };

  function chart(spec, W) {
    const T = 18 + 17 * (spec.lines || []).length, H = 210 + T;
    const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": spec.title, "font-size": 13 });
    const [x0, x1] = spec.x, [y0, y1] = spec.y;
    const px = (v) => L + ((W - L - R) * (v - x0)) / (x1 - x0);
    const py = (v) => H - B - ((H - B - T) * (Math.min(Math.max(v, y0), y1) - y0)) / (y1 - y0);
    const text = (x, y, anchor, words, color) =>
      svg.append(element("text", { x, y, "text-anchor": anchor, fill: color || "currentColor" }, words));
    svg.append(element("path", { d: `M${L} ${T}V${H - B}H${W - R}`, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }));
    const tick = (value, log, digits) => { const v = log ? 10 ** value : value; return v >= 1e4 ? v.toExponential(0).replace("+", "") : number(v, digits); };
    for (const value of spec.bars ? [] : range(x0, x1, 5)) text(px(value), H - B + 16, "middle", tick(value, spec.logx, 3));
    for (const value of range(y0, y1, 3)) text(L - 5, py(value) + 4, "end", tick(value, spec.logy, 2));
    text((L + W - R) / 2, H - 6, "middle", spec.label);
    (spec.bars || []).forEach(([name, value], i) => {
      const width = (W - L - R) / spec.bars.length;
      svg.append(element("rect", { x: L + i * width + 12, y: py(value), width: width - 24, height: H - B - py(value), fill: COLORS[0] }));
      text(L + (i + 0.5) * width, py(value) - 4, "middle", percent(value));
      text(L + (i + 0.5) * width, H - B + 16, "middle", name);
    });
    (spec.lines || []).forEach((line, i) => {
      const d = pieces(line, y0, y1).map((piece) => "M" + piece.map(([v, w]) => `${px(v).toFixed(1)} ${py(w).toFixed(1)}`).join("L")).join("");
      svg.append(element("path", { d, fill: "none", stroke: COLORS[i], "stroke-width": 2.5 }));
      svg.append(element("path", { d: `M${L} ${10 + 17 * i}h18`, stroke: COLORS[i], "stroke-width": 4 }));
      text(L + 24, 14 + 17 * i, "start", line.name);
    });
    (spec.points || []).forEach(([a, b]) => svg.append(element("circle", { cx: px(a), cy: py(b), r: 5, fill: COLORS[1] })));
    return svg;
  }

  const log10 = (values) => values.map(Math.log10);
  const EPSILON = { name: "epsilon", label: "ε", min: 0.1, max: 3, step: 0.05, value: 1 };
  const FIGURES = {
    laplace: {
      controls: [EPSILON, { name: "width", label: "Δ", min: 0.25, max: 3, step: 0.25, value: 1 }],
      draw: ({ epsilon, width }) => {
        const b = width / epsilon, x = range(-8, 11, 381);
        const density = (at) => x.map((v) => Math.exp(-Math.abs(v - at) / b) / (2 * b));
        return {
          title: "Laplace densities of two neighbors", label: "released value", x: [-8, 11], y: [0, Math.max(1.5, 1 / (2 * b))],
          lines: [{ name: "f(x) = 0", x, y: density(0) }, { name: `f(x′) = ${number(width)}`, x, y: density(width) }],
          says: `scale Δ/ε = ${number(b)}; within ± ${number(b * Math.log(20))} in 95 % of releases; one curve is at most e^ε = ${number(Math.exp(epsilon))} times the other`,
        };
      },
    },
    power: {
      controls: [
        { name: "epsilon", label: "ε", min: 0, max: 5, step: 0.05, value: 1 },
        { name: "alpha", label: "α", min: 0.01, max: 0.5, step: 0.01, value: 0.05 },
      ],
      draw: ({ epsilon, alpha }) => {
        const bound = (a) => Math.min(1, a * Math.exp(epsilon), 1 - Math.exp(-epsilon) * (1 - a));
        const x = range(0, 1, 201);
        return {
          title: "The largest power of any test", label: "α: false accusations", x: [0, 1], y: [0, 1],
          lines: [{ name: "at most", x, y: x.map(bound) }, { name: "guessing", x, y: x }],
          points: [[alpha, bound(alpha)]],
          says: `with ε = ${number(epsilon)}, a test that accuses ${percent(alpha)} of the innocent detects at most ${percent(bound(alpha))} of the guilty`,
        };
      },
    },
    exponential: {
      controls: [
        { name: "epsilon", label: "ε", min: 0.05, max: 3, step: 0.05, value: 1 },
        { name: "third", label: "votes of the third", min: 10, max: 40, step: 1, value: 25 },
      ],
      draw: ({ epsilon, third }) => {
        const scores = [15, 20, third], top = Math.max(...scores);
        const weights = scores.map((s) => Math.exp((epsilon * (s - top)) / 2));
        const total = weights.reduce((a, b) => a + b, 0);
        return {
          title: "Who wins the election", label: "", x: [0, 3], y: [0, 1],
          bars: scores.map((s, i) => [`${s} votes`, weights[i] / total]),
          says: `P(y) = exp(ε·votes/2) / sum; the most voted wins with probability ${percent(Math.max(...weights) / total)}`,
        };
      },
    },
    composition: {
      controls: [
        { name: "epsilon", label: "ε of one release", min: 0.01, max: 1, step: 0.01, value: 0.1 },
        { name: "digits", label: "δ = 10 to the power −", min: 3, max: 12, step: 1, value: 6 },
      ],
      draw: ({ epsilon, digits }) => {
        const x = range(0, 200, 101), log = digits * Math.LN10;
        const advanced = (k) => epsilon * Math.sqrt(2 * k * log) + k * epsilon * Math.expm1(epsilon);
        const zcdp = (k) => { const rho = k * epsilon * Math.tanh(epsilon / 2); return rho + 2 * Math.sqrt(rho * log); };
        return {
          title: "The ε of many releases", label: "releases", x: [0, 200], y: [0, 200 * epsilon],
          lines: [
            { name: "sum of ε", x, y: x.map((k) => k * epsilon) },
            { name: "advanced composition", x, y: x.map(advanced) },
            { name: "zCDP", x, y: x.map(zcdp) },
          ],
          says: `200 releases: ${number(200 * epsilon)} by addition, ${number(advanced(200))} by advanced composition, ${number(zcdp(200))} by zCDP`,
        };
      },
    },
    smooth: {
      controls: [
        { name: "beta", label: "β", min: 0.01, max: 0.5, step: 0.01, value: 0.1 },
        { name: "zeros", label: "zeros in the first table", min: 40, max: 60, step: 1, value: 51 },
      ],
      draw: ({ beta, zeros }) => {
        const x = range(0, 30, 31);
        const curve = (count) => {
          const values = Array.from({ length: 101 }, (_, i) => (i < count ? 0 : 100));
          return x.map((k) => Math.exp(-k * beta) * localAt(values, k, 0, 100));
        };
        const first = curve(zeros), second = curve(zeros + 1);
        return {
          title: "Local sensitivity at a distance, discounted", label: "distance k", x: [0, 30], y: [0, 100],
          lines: [{ name: `${zeros} zeros of 101`, x, y: first }, { name: `${zeros + 1} zeros`, x, y: second }],
          says: `local sensitivity ${number(first[0])} and ${number(second[0])}; smooth sensitivity ${number(Math.max(...first))} and ${number(Math.max(...second))}, never more than a factor e^β = ${number(Math.exp(beta))} apart`,
        };
      },
    },
    mixed: {
      controls: [EPSILON, { name: "width", label: "Δ", min: 0.001, max: 0.1, step: 0.001, value: 0.01 }],
      draw: ({ epsilon, width }) => {
        const claim = (s) => (2 * s) / (Math.sqrt(Math.PI) * epsilon);
        const truth = gaussianDelta(epsilon, Math.SQRT2 / epsilon), x = range(0, 0.1, 101);
        const verdict = claim(width) < truth ? "the theorem claims privacy that is not there" : "here the claim holds, by luck";
        return {
          title: "Theorem 10: claimed and true δ", label: "sensitivity Δ", x: [0, 0.1], y: [0, Math.max(0.12, 1.2 * truth)],
          lines: [{ name: "claimed by Theorem 10", x, y: x.map(claim) }, { name: "true", x, y: x.map(() => truth) }],
          points: [[width, claim(width)], [width, truth]].filter(([, delta]) => delta <= Math.max(0.12, 1.2 * truth)),
          says: `Δ = ${number(width)}: claimed δ = ${number(claim(width))}, true δ = ${number(truth)}: ${verdict}`,
        };
      },
    },
    bounded: {
      controls: [
        EPSILON,
        { name: "width", label: "Δ", min: 0.25, max: 5, step: 0.25, value: 1 },
        { name: "upper", label: "u (l is 0)", min: 1, max: 20, step: 0.5, value: 10 },
        { name: "q", label: "f(x)", min: 0, max: 20, step: 0.5, value: 1 },
        { name: "delta", label: "δ", choices: ["0", "1e-6", "0.01", "0.1"], min: 0, max: 3, step: 1, value: 0 },
      ],
      draw: ({ epsilon, width, upper, q, delta }) => {
        const reach = Math.min(width, upper), at = Math.min(q, upper), loose = [0, 1e-6, 0.01, 0.1][delta];
        const b = boundedScale(reach, epsilon, upper, loose), plain = reach / epsilon, x = range(0, upper, 401);
        const density = (scale) => x.map((v) => Math.exp(-Math.abs(v - at) / scale) / (2 * scale) / boundedMass(at, scale, upper));
        const fixed = density(b), naive = density(plain), top = Math.max(...fixed, ...naive);
        return {
          title: "Bounded Laplace noise", label: "released value", x: [0, upper], y: [0, top],
          lines: [{ name: `Theorem 26, b = ${number(b, 4)}`, x, y: fixed }, { name: `b = Δ/ε = ${number(plain)}`, x, y: naive }],
          says: `Theorem 26 needs b = ${number(b, 6)}; with b = Δ/ε = ${number(plain)} the loss is ${number(boundedLoss(plain, reach, upper), 4)} and not ε = ${number(epsilon)}`,
        };
      },
    },
    steps: {
      controls: [{ name: "gamma", label: "γ", min: 0.05, max: 1.1, step: 0.05, value: 0.4 }],
      draw: ({ gamma }) => {
        const x = range(0, 20, 21), y = x.map((h) => (1 - 2 * gamma) ** h), edge = Math.max(1, ...y.map(Math.abs));
        return {
          title: "Gradient descent on b²", label: "step", x: [0, 20], y: [Math.min(0, ...y) < 0 ? -edge : 0, edge],
          lines: [{ name: `b after each step, γ = ${number(gamma)}`, x, y }],
          says: `each step multiplies b by 1 − 2γ = ${number(1 - 2 * gamma)}: after 20 steps b = ${number(y[20])}${gamma >= 1 ? ", it does not converge" : ""}`,
        };
      },
    },
    utility: {
      controls: [
        { name: "rho", label: "ρ", min: 0.1, max: 0.9, step: 0.05, value: 0.5 },
        { name: "kappa", label: "κ", min: 0, max: 1.5, step: 0.05, value: 0.8 },
        { name: "digits", label: "log₁₀ N", min: 1, max: 4.5, step: 0.25, value: 3 },
      ],
      draw: ({ rho, kappa, digits }) => {
        const N = Math.round(10 ** digits), all = privateDescent(rho, kappa, N);
        const shown = [...new Set(range(0, Math.log10(N), 60).map((v) => Math.round(10 ** v)))], x = log10(shown);
        const cost = all.theorem.map((v, h) => Math.min(v, all.composed[h])), last = N - 1;
        const average = N > 1 ? all.composed[N - 2] : 0;
        const lines = Object.entries({ "A₁": all.A1, "A₂": all.A2, "A₃, for privacy": all.A3, "ε of the last iterate": cost });
        const drawn = lines.map(([name, values]) => ({ name, x, y: log10(shown.map((n) => values[n - 1])) }));
        const y = drawn.flatMap((line) => line.y);
        return {
          title: "The bound (11) and its price", label: "steps N", logx: true, logy: true,
          x: [0, Math.log10(N)], y: [Math.floor(Math.min(...y)), Math.ceil(Math.max(...y))], lines: drawn,
          says: `N = ${N}: A₁ = ${number(all.A1[last])}, A₂ = ${number(all.A2[last])}, A₃ = ${number(all.A3[last])}; the last iterate costs ε = ${number(cost[last])} (Theorem 36: ${number(all.theorem[last])}, composed: ${number(all.composed[last])}), the average ${number(average)}`,
        };
      },
    },
    pareto: {
      controls: [
        { name: "alpha", label: "α", min: 1.2, max: 4, step: 0.1, value: 2 },
        { name: "clip", label: "clip c", min: 2, max: 100, step: 1, value: 27 },
        EPSILON,
      ],
      draw: ({ alpha, clip, epsilon }) => {
        const x = range(2, 100, 99), parts = x.map((c) => paretoParts(alpha, c, 1000, epsilon));
        const curve = (name) => parts.map((part) => part[name]), totals = curve("total"), here = paretoParts(alpha, clip, 1000, epsilon);
        const best = totals.indexOf(Math.min(...totals)), top = Math.max(2.5 * totals[best], 0.05);
        return {
          title: "A noisy mean of 1,000 Pareto values", label: "values are clipped to [1, c]", x: [2, 100], y: [0, top],
          lines: [{ name: "root mean squared error", x, y: totals }, { name: "bias of clipping", x, y: curve("bias") }, { name: "noise", x, y: curve("noise") }],
          points: [[clip, here.total]].filter(([, y]) => y <= top),
          says: `mean ${number(alpha / (alpha - 1))}; c = ${clip}: bias −${number(here.bias)}, noise ${number(here.noise)}, error ${number(here.total)}; best c ${best + 2 === 100 ? "is beyond 100" : `= ${best + 2}, error ${number(totals[best])}`}`,
        };
      },
    },
    heavy: {
      controls: [
        { name: "d", label: "websites d", min: 2, max: 500, step: 1, value: 100 },
        { ...EPSILON, value: 0.5 },
        { name: "lead", label: "lead of the first", min: 0, max: 80, step: 1, value: 39 },
      ],
      draw: ({ d, epsilon, lead }) => {
        const x = range(0, 80, 41), selection = (v) => 1 / (1 + (d - 1) * Math.exp((-epsilon * v) / 2));
        const noise = (v) => laplaceWins((v * epsilon) / d, d - 1), bound = (v) => Math.max(0, 1 - d * Math.exp((-epsilon * v) / 2));
        return {
          title: "Naming the most visited website", label: "lead over all others", x: [0, 80], y: [0, 1],
          lines: [
            { name: "exponential mechanism", x, y: x.map(selection) }, { name: "at least, Proposition 1.4", x, y: x.map(bound) },
            { name: "Laplace noise d/ε on all counts", x, y: x.map(noise) },
          ],
          points: [[lead, selection(lead)]],
          says: `lead ${lead}: named with probability ${percent(selection(lead))}, with noise d/ε = ${number(d / epsilon)} on all counts ${percent(noise(lead))}; within ${number((2 / epsilon) * Math.log(100 * d))} of the best with probability 0.99`,
        };
      },
    },
    pricing: {
      controls: [
        { name: "price", label: "everybody pays (¢)", min: 10, max: 199, step: 1, value: 70 },
        { name: "people", label: "people", min: 10, max: 2000, step: 10, value: 1000 },
        EPSILON,
      ],
      draw: ({ price, people, epsilon }) => {
        const x = range(1, 199, 199), earned = x.map((c) => (Math.round(c) <= price ? (people * c) / 100 : 0)), best = (people * price) / 100;
        const weights = earned.map((q) => Math.exp((epsilon * (q - best)) / (2 * 1.99))), total = sum(weights), p = weights.map((w) => w / total);
        const loss = best - sum(p.map((v, i) => v * earned[i])), above = sum(p.slice(price));
        return {
          title: "A price for everybody", label: "price in cents", x: [1, 199], y: [0, 1],
          lines: [{ name: "share of the best revenue", x, y: earned.map((q) => q / best) }, { name: "probability of the price", x, y: p }],
          says: `the best price earns ${number(best, 4)} $; expected loss ${number(loss, 4)} $, bound 2Δ·ln(199)/ε = ${number((2 * 1.99 * Math.log(199)) / epsilon, 4)} $; a price above ${price} ¢ has probability ${percent(above)}`,
        };
      },
    },
    noisymax: {
      controls: [
        { name: "m", label: "counts m", min: 2, max: 1000, step: 1, value: 100 }, EPSILON,
        { name: "beta", label: "β", min: 0.01, max: 0.5, step: 0.01, value: 0.05 },
      ],
      draw: ({ m, epsilon, beta }) => {
        const edge = (2 * Math.log(m / beta)) / epsilon, x = range(0, 1.25 * edge, 61);
        const exact = (g) => 1 - laplaceWins(g * epsilon, m - 1), bound = (g) => Math.min(1, m * Math.exp((-g * epsilon) / 2));
        return {
          title: "Report noisy max: how often it is so far off", label: "all others are this far below the best", x: [0, 1.25 * edge], y: [0, 1],
          lines: [{ name: "at most, m·e^(−εg/2)", x, y: x.map(bound) }, { name: "Lap(1/ε), exactly", x, y: x.map(exact) }],
          points: [[edge, beta]],
          says: `within 2·ln(m/β)/ε = ${number(edge, 4)} of the best with probability at least ${percent(1 - beta)}; others that far below win with probability ${percent(exact(edge))}`,
        };
      },
    },
    reset: {
      controls: [
        { name: "epsilon", label: "ε of a day", min: 0.1, max: 4, step: 0.1, value: 1 },
        { name: "days", label: "days", min: 1, max: 365, step: 1, value: 31 },
      ],
      draw: ({ epsilon, days }) => {
        const p = 1 / (1 + Math.exp(-epsilon)), x = range(1, 365, 183).map(Math.round), right = majority(days, p);
        return {
          title: "A budget that is full again every day", label: "days", x: [1, 365], y: [0.5, 1],
          lines: [{ name: "fresh answers: guess by majority", x, y: x.map((k) => majority(k, p)) }, { name: "one answer, remembered", x, y: x.map(() => p) }],
          points: [[days, right]],
          says: `${days} days cost ε = ${number(days * epsilon, 4)}; a guess from all fresh answers to one yes-or-no question is right in ${percent(right)} of cases, from one answer in ${percent(p)}`,
        };
      },
    },
    census: {
      controls: [
        { ...EPSILON, max: 10 }, { name: "tables", label: "tables", min: 1, max: 40, step: 1, value: 10 },
        { name: "block", label: "people in a block", min: 1, max: 500, step: 1, value: 50 },
      ],
      draw: ({ epsilon, tables, block }) => {
        const x = range(-1, 1, 81), error = (e) => countError(e / tables), curve = x.map((v) => error(10 ** v));
        const shown = curve.map((w) => Math.min(1, w / block)), here = error(epsilon);
        return {
          title: "Privacy and accuracy of a census", label: "ε of all tables together", logx: true, x: [-1, 1], y: [0, 1],
          lines: [{ name: `± of a count of ${block} people, as a share of it`, x, y: shown }],
          points: [[Math.log10(epsilon), Math.min(1, here / block)]],
          says: `ε = ${number(epsilon)} over ${tables} tables: every count is within ± ${here} in 95 % of releases, ${number((100 * here) / block)} % of a block of ${block}; half the error costs twice the ε`,
        };
      },
    },
    means: {
      controls: [
        EPSILON, { name: "n", label: "records n", min: 10, max: 1000, step: 10, value: 100 },
        { name: "mean", label: "mean", min: 0, max: 1, step: 0.05, value: 0.4 },
      ],
      draw: ({ epsilon, n, mean }) => {
        const x = range(0, 1, 1001), laplace = x.map((l) => (n * epsilon / 2) * Math.exp(-n * epsilon * Math.abs(l - mean)));
        const rate = (n * epsilon) / 2, cost = meanCost(n, epsilon), erf = (v) => 1 - erfc(v);
        const area = (2 - Math.exp(-rate * mean) - Math.exp(-rate * (1 - mean))) / rate;
        const normal = (Math.sqrt(Math.PI / rate) / 2) * (erf(mean * Math.sqrt(rate)) + erf((1 - mean) * Math.sqrt(rate)));
        const absolute = x.map((l) => Math.exp(-rate * Math.abs(l - mean)) / area);
        const square = x.map((l) => Math.exp(-rate * (l - mean) ** 2) / normal);
        return {
          title: "A mean, released in three ways", label: "released value", x: [0, 1], y: [0, Math.max(...laplace, ...absolute, ...square)],
          lines: [{ name: "Laplace noise", x, y: laplace }, { name: "utility −|mean − l| on [0, 1]", x, y: absolute }, { name: "utility −(mean − l)² on [0, 1], Δ = 1/n", x, y: square }],
          says: `Laplace noise costs ε = ${number(epsilon)}; −|mean − l| costs ${number(cost)} on [0, 1] and ${number(epsilon / 2)} over the line`,
        };
      },
    },
    ks: {
      controls: [{ name: "index", label: "ε", choices: ["0.1", "0.5", "1", "5"], min: 0, max: 3, step: 1, value: 2 }],
      draw: ({ index }, data) => {
        const epsilon = ["0.1", "0.5", "1", "5"][index], curve = data.curves[epsilon];
        const distance = Math.max(...curve.map((v, i) => Math.abs(v - data.truth[i])));
        return {
          title: "A released distribution function", label: "value", x: [0, 1], y: [0, 1],
          lines: [{ name: "the data", x: data.x, y: data.truth }, { name: `released, ε = ${epsilon}`, x: data.x, y: curve }],
          says: `largest distance between the two: ${number(distance)}`,
        };
      },
    },
    descent: {
      controls: [{ name: "index", label: "ε", choices: ["0.1", "0.3", "1", "3"], min: 0, max: 3, step: 1, value: 2 }],
      draw: ({ index }, data) => {
        const epsilon = ["0.1", "0.3", "1", "3"][index], path = data.paths[epsilon];
        const x = path.map((_, i) => i), low = Math.min(0, ...path), high = Math.max(1, ...path);
        return {
          title: "Private descent to a mean", label: "step", x: [0, path.length - 1], y: [low, high],
          lines: [{ name: `iterates, ε = ${epsilon}`, x, y: path }, { name: "the mean", x, y: x.map(() => data.target) }],
          says: `last iterate ${number(path[path.length - 1])}, the mean is ${number(data.target)}`,
        };
      },
    },
  };

  function bring(figure, index) {
    const spec = FIGURES[figure.dataset.figure];
    if (!spec) return;
    const data = figure.dataset.values ? JSON.parse(figure.dataset.values) : null;
    const picture = figure.querySelector(".made-picture");
    const panel = document.createElement("div");
    panel.className = "made-controls";
    const says = document.createElement("p");
    says.className = "made-says";
    says.setAttribute("aria-live", "polite");
    const values = {};
    const draw = () => {
      const result = spec.draw(values, data);
      picture.replaceChildren(chart(result, Math.min(Math.max(picture.clientWidth, 300), 660)));
      says.textContent = result.says;
    };
    for (const control of spec.controls) {
      const label = document.createElement("label");
      const slider = document.createElement("input");
      const shown = document.createElement("output");
      slider.type = "range";
      slider.id = `slider-${index}-${control.name}`;
      label.htmlFor = slider.id;
      Object.assign(slider, { min: control.min, max: control.max, step: control.step });
      slider.value = control.value;
      const read = () => {
        values[control.name] = Number(slider.value);
        shown.textContent = control.choices ? control.choices[values[control.name]] : slider.value;
      };
      read();
      slider.addEventListener("input", () => { read(); draw(); });
      label.append(control.label + " ");
      const row = document.createElement("div");
      row.append(label, slider, shown);
      panel.append(row);
    }
    figure.insertBefore(panel, picture.nextSibling);
    figure.insertBefore(says, panel.nextSibling);
    draw();
    window.addEventListener("resize", draw);
  }

  if (typeof document === "undefined") {
    module.exports = { FIGURES, erfc, gaussianDelta, localAt, pieces, laplaceWins, boundedScale, countError, majority, meanCost }; /* for the tests, which compare them with Python */
    return;
  }
  const start = () => document.querySelectorAll("figure[data-figure]").forEach(bring);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
