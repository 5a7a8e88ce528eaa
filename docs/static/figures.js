/* The moving figures of the site: sliders and SVG, nothing else. Without this script the pictures of the build stay. */
"use strict";
(function () {
  const NS = "http://www.w3.org/2000/svg";
  const COLORS = ["#2c7fb8", "#d95f02", "#1b9e77"];
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
    for (const value of spec.bars ? [] : range(x0, x1, 5)) text(px(value), H - B + 16, "middle", number(value, 3));
    for (const value of range(y0, y1, 3)) text(L - 5, py(value) + 4, "end", number(value, 2));
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
    module.exports = { FIGURES, erfc, gaussianDelta, localAt, pieces }; /* for the tests, which compare them with Python */
    return;
  }
  const start = () => document.querySelectorAll("figure[data-figure]").forEach(bring);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
