// The page of a comparison. DATA is the JSON that compare_page.py writes.

const DATA = JSON.parse(document.getElementById("data").textContent);
const [KIND, NAME, BEGIN, DURATION, LINES, OPERATIONS, BYTES, KERNEL, DEPTH, RUNS, SLOWEST, ITERATIONS] = Array(12).keys();
const KINDS = {
  op: "eager op", kernel: "kernel", product: "matrix product", copy: "copy", host: "NumPy or Python",
  control: "branch or loop", native: "machine code", transfer: "transfer", wait: "wait",
};
const HUES = 6; // of kernels: styles.py has the same for the boxes of graphs
const PHASES = {
  trace: "trace", passes: "passes", emission: "plan and emit", compilation: "compile", linking: "load",
};

// Elements

function element(name, attributes = {}, ...children) {
  const created = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

function shape(name, attributes = {}, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

function label(text, x, y, attributes = {}) {
  return shape("text", { x, y, ...attributes }, text);
}

function card(name, title, hint, ...children) {
  return element("section", { class: `card ${name}` }, element("h2", {}, title), element("p", { class: "hint" }, hint), ...children);
}

function button(text, title, action) {
  const created = element("button", { type: "button", title }, text);
  created.addEventListener("click", action);
  return created;
}

/** A chart that is drawn for the width of its place, and again when that changes. */
function chart(height, description, draw) {
  const place = element("div");
  let drawn = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.max(240, Math.floor(place.clientWidth));
    if (width === drawn) return;
    drawn = width;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": description });
    draw(svg, width, height);
    place.replaceChildren(svg);
  });
  observer.observe(place);
  return place;
}

/** The fill of a step: that of its kernel, or of its kind, where a pattern is the second cue. */
function fill(step) {
  if (step[KERNEL]) return `var(--hue${Number(step[KERNEL].slice(1)) % HUES})`;
  return `var(--${step[KIND]})`;
}

function swatch(colour, pattern = "") {
  return element("i", { class: pattern, style: `background-color: ${colour}` });
}

// Numbers

function rounded(number) {
  return number >= 100 ? Math.round(number).toLocaleString("en") : String(Number(number.toPrecision(3)));
}

function scaled(number, units) {
  for (const [unit, name] of units) if (Math.abs(number) >= unit) return `${rounded(number / unit)} ${name}`;
  const [unit, name] = units.at(-1);
  return `${rounded(number / unit)} ${name}`;
}

const time = (seconds) => scaled(seconds, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
const size = (bytes) => scaled(bytes, [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
const rate = (number, unit) => scaled(number, [[1e12, `T${unit}`], [1e9, `G${unit}`], [1e6, `M${unit}`], [1e3, `k${unit}`], [1, unit]]);
const counted = (number, one) => `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;

/** About `count` round numbers between two numbers. */
function ticks(from, to, count) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, i) => (first + i) * step);
}

/** Round numbers of bytes, of one unit. */
function byteTicks(most, count) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(most) / 10));
  return ticks(0, most / unit, count).map((number) => number * unit);
}

/** The anchor of a label that stays inside of the chart. */
function anchor(x, left, right) {
  if (x < left + 16) return "start";
  return x > right - 16 ? "end" : "middle";
}

function powers(from, to) {
  const first = Math.ceil(Math.log10(from) - 1e-9);
  const every = Math.max(1, Math.ceil((Math.log10(to) - first) / 8));
  const result = [];
  for (let power = first; power <= Math.log10(to) + 1e-9; power += every) result.push(10 ** power);
  return result;
}

// The comparison that is shown

class View {
  constructor(comparison, index) {
    this.data = comparison;
    this.selected = new Set();
    this.root = element("div");
    this.root.append(
      element("p", { class: "signature" }, `${comparison.name}(${comparison.arguments})`),
      figures(comparison),
      element("div", { class: "cards" },
        timeline(this), sizes(index), calls(comparison), memory(comparison), costs(comparison), breakEven(comparison),
        roofline(this), graphs(this), kernels(this), numbers(comparison)),
    );
    this.root.addEventListener("click", (event) => {
      const marked = event.target.closest("[data-lines]");
      if (marked) this.select(marked.dataset.lines.split(" ").map(Number));
    });
  }

  /** Highlight everything that these lines of the user have called; nothing if they are selected already. */
  select(lines) {
    const same = lines.length === this.selected.size && lines.every((line) => this.selected.has(line));
    this.selected = new Set(same ? [] : lines);
    this.mark();
    this.root.querySelector(".row-of-source.on")?.scrollIntoView({ block: "nearest" });
  }

  mark() {
    for (const marked of this.root.querySelectorAll("[data-lines]")) {
      const on = marked.dataset.lines.split(" ").some((line) => this.selected.has(Number(line)));
      marked.classList.toggle("on", on);
    }
  }

  line(number) {
    return this.data.lines[number];
  }

  text(number) {
    for (const block of this.data.sources) for (const row of block.rows) if (row[2] === number) return row[1].trim();
    return "";
  }
}

function figures(c) {
  const fact = (name, value, note) => element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, note)));
  const ratio = c.speedup >= 1 ? `${rounded(c.speedup)}× faster` : `${rounded(1 / c.speedup)}× slower`;
  return element("dl", { class: "figures" },
    fact("compiled is", ratio, `${time(c.eager_seconds)} eager, ${time(c.graph_seconds)} compiled`),
    fact("it pays after", c.break_even === null ? "never" : counted(c.break_even, "call"),
      c.break_even_warm === null ? "each call takes longer" : `${counted(c.break_even_warm, "call")} when the code is on disk`),
    fact("peak memory", size(c.graph_peak_bytes), `${size(c.eager_peak_bytes)} eager`),
    fact("one call runs", counted(c.kernels, "kernel"), `${counted(c.eager.length + c.omitted[0], "op")} eager`
      + (c.blas_calls ? `; ${counted(c.blas_calls, "matrix product")}` : "")
      + (c.host_calls ? `; ${counted(c.host_calls, "host call")}` : "")),
    fact("results", c.agrees ? "agree" : "differ", c.reason));
}

// The timeline

const [OUTER, INNER] = [34, 22]; // the heights of steps, and of those inside branches and loops
const STRIPED = ["host", "transfer", "wait"];
const OFF_CHIP = ["transfer", "wait"]; // the steps of a device that have rows of their own
const rowTop = (depth) => (depth ? OUTER + 2 + (depth - 1) * (INNER + 2) : 0);

/** Lanes of the timeline below each other, each with a row for each depth of loops, then for transfers and waits. */
function laidOut(lanes) {
  let top = 0;
  return lanes.map(([name, colour, steps, seconds]) => {
    const deepest = Math.max(0, ...steps.map((step) => step[DEPTH]));
    const others = OFF_CHIP.filter((kind) => steps.some((step) => step[KIND] === kind));
    const rows = (step) => (others.includes(step[KIND]) ? deepest + 1 + others.indexOf(step[KIND]) : step[DEPTH]);
    const bottom = top + 30 + rowTop(1 + deepest + others.length) + 8;
    const lane = { name, colour, steps, rows, seconds, top, bottom };
    top = bottom;
    return lane;
  });
}

/** The patterns of steps on the host, transfers and waits, which differ from kernels without colours, too. */
function stripes() {
  const angles = { host: 45, transfer: 90, wait: 135 };
  return shape("defs", {}, ...STRIPED.map((kind) => shape("pattern", {
    id: `${kind}-stripes`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angles[kind]})`,
  }, shape("rect", { width: 2, height: 6, fill: "#0006" }))));
}

function timeline(view) {
  const c = view.data;
  const lanes = laidOut([
    ["eager", "var(--eager)", c.eager, c.eager_seconds], ["compiled", "var(--graph)", c.graph, c.graph_seconds],
    ...c.devices.map((device, i) => [`compiled, on ${device.device}`, deviceColour(i), device.steps, device.seconds]),
  ]);
  const steps = lanes.flatMap((lane) => lane.steps);
  const end = Math.max(10, ...lanes.map((lane) => 1e9 * lane.seconds), ...steps.map((s) => s[BEGIN] + s[DURATION]));
  const compiledEnd = Math.max(10, 1e9 * c.graph_seconds, ...c.graph.map((s) => s[BEGIN] + s[DURATION]));
  let range = [0, end];
  let current = null;
  const details = element("p", { class: "details", "aria-live": "polite" });
  const height = lanes.at(-1).bottom + 20;
  const svg = shape("svg", {
    class: "timeline", height, tabindex: 0, role: "application",
    "aria-label": "Timelines of an eager and a compiled call. Arrow keys select a step, plus and minus zoom, 0 shows all.",
  });
  const idle = "Point at a step, or focus the timeline and press an arrow key.";

  function describe(step) {
    if (step === null) return details.replaceChildren(idle);
    const several = step[RUNS] > 1;
    const facts = [
      `${KINDS[step[KIND]]} ${step[NAME]}${step[KERNEL] ? ` (${step[KERNEL]})` : ""}: ${time(step[DURATION] / 1e9)}`
        + (several ? ` in ${step[RUNS].toLocaleString("en")} runs` : ` at ${time(step[BEGIN] / 1e9)}`),
      step[ITERATIONS] ? counted(step[ITERATIONS], "iteration") : "",
      several ? `the slowest ${time(step[SLOWEST] / 1e9)}` : "",
      step[BYTES] ? `${size(step[BYTES])} ${step[KIND] === "transfer" ? "moved" : "read and written"}${several ? " each" : ""}` : "",
    ];
    const lines = step[LINES].slice(0, 3).flatMap((line) => [element("br"), `${view.line(line)}  `, element("code", {}, view.text(line))]);
    details.replaceChildren(facts.filter(Boolean).join(", "), ...lines);
  }

  function caption(step) {
    const name = step[KERNEL] ? `${step[KERNEL]} ${step[NAME]}` : step[NAME];
    if (step[ITERATIONS]) return `${name} \u00d7 ${step[ITERATIONS].toLocaleString("en")}`;
    return name;
  }

  function draw() {
    const width = Math.max(240, svg.clientWidth);
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const x = (nanoseconds) => (width * (nanoseconds - range[0])) / (range[1] - range[0]);
    const shapes = [stripes()];
    for (const tick of ticks(range[0], range[1], Math.max(2, width / 110))) {
      shapes.push(shape("path", { class: "axis", d: `M${x(tick)} 0V${height - 18}` }));
      shapes.push(label(time(tick / 1e9).replace(/^0 ns$/, "0"), x(tick), height - 4, { class: "quiet", "text-anchor": anchor(x(tick), 4, width - 14) }));
    }
    for (const { name, colour, top, steps: own, rows, seconds } of lanes) {
      shapes.push(label(`${name}: ${time(seconds)} a call`, 4, top + 14, { "font-weight": 600 }));
      const right = Math.min(width, x(1e9 * seconds));
      if (right > 0) shapes.push(shape("rect", { x: Math.max(0, x(0)), y: top + 20, width: right - Math.max(0, x(0)), height: 6, fill: colour }));
      for (const step of own) {
        const [left, stop] = [x(step[BEGIN]), x(step[BEGIN] + step[DURATION])];
        if (stop < 0 || left > width) continue;
        shapes.push(...bar(step, left, stop, top + 30 + rowTop(rows(step)), width));
      }
    }
    svg.replaceChildren(...shapes);
    view.mark();
  }

  /** The shapes of a step between two positions. */
  function bar(step, left, stop, y, width) {
    const tall = step[DEPTH] || OFF_CHIP.includes(step[KIND]) ? INNER : OUTER;
    const sides = { x: left, y, width: Math.max(0.75, stop - left), height: tall };
    const drawn = shape("rect", { class: "step", ...sides, fill: fill(step) });
    if (step[LINES].length) drawn.dataset.lines = step[LINES].join(" ");
    if (step === current) drawn.setAttribute("style", "stroke: var(--text); stroke-width: 2");
    drawn.addEventListener("pointerenter", () => describe(step));
    const shapes = [drawn];
    if (STRIPED.includes(step[KIND])) shapes.push(shape("rect", { ...sides, fill: `url(#${step[KIND]}-stripes)`, "pointer-events": "none" }));
    const room = Math.min(width, stop) - Math.max(0, left);
    const texts = [caption(step), step[KERNEL]].filter((text) => text && room > 6.6 * text.length + 4);
    if (texts.length) {
      shapes.push(label(texts[0], Math.max(0, left) + room / 2, y + tall / 2 + 4, { class: "caption", "text-anchor": "middle", "pointer-events": "none" }));
    }
    return shapes;
  }

  function zoom(factor, at = 0.5) {
    const length = Math.min(end, Math.max(10, (range[1] - range[0]) * factor));
    const center = range[0] + at * (range[1] - range[0]);
    move(center - at * length, length);
  }

  function move(from, length = range[1] - range[0]) {
    const begin = Math.min(Math.max(0, from), end - length);
    range = [begin, begin + length];
    draw();
  }

  function choose(offset) {
    if (!steps.length) return;
    const index = current === null ? (offset > 0 ? 0 : steps.length - 1) : steps.indexOf(current) + offset;
    current = steps[Math.min(steps.length - 1, Math.max(0, index))];
    describe(current);
    const middle = current[BEGIN] + current[DURATION] / 2;
    if (middle < range[0] || middle > range[1]) move(middle - (range[1] - range[0]) / 2);
    else draw();
  }

  const keys = {
    ArrowRight: () => choose(1), ArrowLeft: () => choose(-1), "+": () => zoomAtCurrent(0.5), "=": () => zoomAtCurrent(0.5),
    "-": () => zoomAtCurrent(2), 0: () => move(0, end), Home: () => move(0, end),
    Enter: () => current && view.select(current[LINES]),
  };
  function zoomAtCurrent(factor) {
    const middle = current === null ? (range[0] + range[1]) / 2 : current[BEGIN] + current[DURATION] / 2;
    zoom(factor, Math.min(1, Math.max(0, (middle - range[0]) / (range[1] - range[0]))));
  }
  svg.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / svg.clientWidth);
  }, { passive: false });
  svg.addEventListener("pointermove", (event) => {
    if (event.buttons) move(range[0] - (event.movementX / svg.clientWidth) * (range[1] - range[0]));
  });
  new ResizeObserver(draw).observe(svg);
  describe(null);
  const kinds = [...new Set(steps.filter((step) => !step[KERNEL]).map((step) => step[KIND]))];
  const kernels = [...new Map(steps.filter((step) => step[KERNEL]).map((step) => [step[KERNEL], step])).values()].slice(0, 2 * HUES);
  const entries = [
    ...kinds.map((kind) => [KINDS[kind], `var(--${kind})`, STRIPED.includes(kind) ? `${kind} striped` : ""]),
    ...kernels.map((step) => [`kernel ${step[KERNEL]}`, fill(step)]),
  ];
  const [ops, ...others] = c.omitted;
  const leftOut = [counted(ops, "eager op"), counted(others.reduce((sum, count) => sum + count, 0), "step")].join(" and ");
  const omitted = c.omitted.some(Boolean) ? ` The page leaves out ${leftOut} at the end.` : "";
  const section = card("wide", "Timeline",
    "The bar is the best time of a call. Below it are the steps of a call that was recorded: gaps between eager ops are Python, in proportion; "
    + `the steps of the compiled call follow each other${c.devices.length ? ", and on a device the host waits for each" : ""}. Steps of a branch or loop are below it, each with the sum of its iterations.${omitted}`,
    element("div", { class: "row" }, button("+", "zoom in", () => zoom(0.5)), button("−", "zoom out", () => zoom(2)),
      button("all", "show all", () => move(0, end)), button("compiled", "zoom to the compiled call", () => move(0, compiledEnd))),
    svg, legend(entries), details);
  return section;
}

// Charts

function bars(rows, format, description) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-12);
  return chart(30 * rows.length, description, (svg, width) => {
    const left = Math.min(130, width * 0.3);
    rows.forEach(([name, value, colour], row) => {
      const length = Math.max(1, ((width - left - 90) * value) / most);
      svg.append(label(name, 0, 30 * row + 19), shape("rect", { x: left, y: 30 * row + 5, width: length, height: 20, rx: 3, fill: colour }),
        label(format(value), left + length + 6, 30 * row + 19));
    });
  });
}

function calls(c) {
  return card("calls", "Time and memory of a call", `${c.devices.length ? "The first two are on the CPU; those of a device include its transfers. " : "CPU. "}Time is the best of several rounds; memory is the peak beyond arguments and variables.`,
    element("h3", {}, "time"),
    bars([["eager", c.eager_seconds, "var(--eager)"], ["compiled", c.graph_seconds, "var(--graph)"],
      ...c.devices.map((device, i) => [device.device, device.seconds, deviceColour(i)])], time, "Time of a call"),
    element("h3", {}, "peak memory"),
    bars([["eager", c.eager_peak_bytes, "var(--eager)"], ["compiled", c.graph_peak_bytes, "var(--graph)"],
      ...c.devices.map((device, i) => [device.device, device.peak_bytes, deviceColour(i)]).filter(([, bytes]) => bytes !== null)], size, "Peak memory of a call"),
    ...c.devices.map((device) => element("p", { class: "hint" }, `${device.device}: ${device.description}; ${size(device.transferred)} moved in a call; `
      + (device.agrees ? "the results agree with the eager ones." : `the results differ: ${device.difference.reason}`))));
}

const deviceColour = (i) => `var(--device${i % 2})`;

/** The time of a function over the size of its arguments, one line for each way of running it. */
function sizes(index) {
  const group = DATA.sizes.find((candidate) => candidate.comparisons.includes(index));
  if (!group) return "";
  const colours = ["var(--eager)", "var(--graph)", ...Object.keys(group.seconds).slice(2).map((_, i) => deviceColour(i))];
  const series = Object.entries(group.seconds).map(([way, seconds], i) => [way, seconds, colours[i], i > 1 ? "6 3" : ""]);
  const facts = Object.entries(group.pays).map(([key, bytes]) => {
    const way = key === "compiled" ? "The compiled function" : `On ${key} it`;
    const other = key === "compiled" ? "the eager one" : "compiled on the CPU";
    if (bytes === null) return `${way} is never faster than ${other} up to ${size(group.bytes.at(-1))} of arguments.`;
    return bytes <= group.bytes[0] ? `${way} is faster than ${other} at all of these sizes.`
      : `${way} is faster than ${other} from about ${size(bytes)} of arguments on.`;
  });
  return card("wide sizes", "Sizes", `The time of a call at the sizes on this page. ${facts.join(" ")}`,
    chart(240, "Time of a call over the bytes of its arguments", (svg, width, height) => {
      const [left, right, bottom, top] = [64, width - 8, height - 34, 10];
      const times = series.flatMap(([, seconds]) => seconds);
      const [least, most, small, large] = [Math.min(...times) / 1.5, Math.max(...times) * 1.5, group.bytes[0], group.bytes.at(-1)];
      const x = (bytes) => left + 10 + ((right - left - 20) * Math.log(bytes / small)) / Math.log(large / small);
      const y = (seconds) => bottom - ((bottom - top) * Math.log(seconds / least)) / Math.log(most / least);
      for (const bytes of group.bytes) {
        svg.append(shape("path", { class: "axis", d: `M${x(bytes)} ${top}V${bottom}` }),
          label(size(bytes), x(bytes), bottom + 14, { class: "quiet", "text-anchor": anchor(x(bytes), left, right) }));
      }
      for (const seconds of powers(least, most)) {
        svg.append(shape("path", { class: "axis", d: `M${left} ${y(seconds)}H${right}` }), label(time(seconds), left - 6, y(seconds) + 4, { class: "quiet", "text-anchor": "end" }));
      }
      svg.append(label("bytes of arguments", (left + right) / 2, height - 4, { class: "quiet", "text-anchor": "middle" }));
      for (const [, seconds, colour, dashes] of series) {
        const path = seconds.map((value, i) => `${i ? "L" : "M"}${x(group.bytes[i]).toFixed(1)} ${y(value).toFixed(1)}`).join("");
        svg.append(shape("path", { d: path, fill: "none", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dashes }),
          ...seconds.map((value, i) => shape("circle", { cx: x(group.bytes[i]), cy: y(value), r: 4, fill: colour })));
      }
    }), legend(series.map(([way, , colour]) => [way, colour])));
}

function memory(c) {
  const most = Math.max(1, ...c.memory[0], ...c.memory[1]);
  const series = [["eager", c.memory[0], "var(--eager)", ""], ["compiled", c.memory[1], "var(--graph)", "6 3"]];
  return card("memory", "Memory during a call", "Allocated bytes after each eager op, and in each step of the compiled plan.",
    chart(200, "Memory during a call", (svg, width, height) => {
      const [left, bottom, top] = [64, height - 24, 10];
      const y = (bytes) => bottom - ((bottom - top) * bytes) / most;
      for (const tick of byteTicks(most, 4)) {
        svg.append(shape("path", { class: "axis", d: `M${left} ${y(tick)}H${width}` }), label(size(tick), left - 6, y(tick) + 4, { "text-anchor": "end", class: "quiet" }));
      }
      svg.append(label("first step", left, height - 6, { class: "quiet" }), label("last step", width, height - 6, { class: "quiet", "text-anchor": "end" }));
      for (const [, values, colour, dashes] of series) {
        if (!values.length) continue;
        const x = (step) => left + ((width - left) * step) / values.length;
        const path = values.map((bytes, i) => `${i ? "" : `M${left} `}${i ? `V${y(bytes)}` : y(bytes)}H${x(i + 1)}`).join("");
        svg.append(shape("path", { d: path, fill: "none", stroke: colour, "stroke-width": 2.5, "stroke-dasharray": dashes }));
      }
    }),
    legend(series.map(([name, , colour]) => [name, colour])));
}

/** The names of colours, each of which may have the class of a pattern. */
function legend(entries) {
  return element("ul", { class: "legend" }, ...entries.map(([name, colour, pattern]) => element("li", {}, swatch(colour, pattern), name)));
}

function costs(c) {
  const rows = Object.entries(PHASES).map(([key, name], i) => [name, c.costs[key], `var(--phase${i})`]);
  const sources = { compiled: "This process compiled the code.", disk: "The code was on disk, so this process did not compile; the bar is what compiling it took.", process: "Another function of the process had the same code.", none: "There is no machine code." };
  return card("costs", "Cost before the first result", `Once per function and signature. ${sources[c.costs.source]}`,
    bars(rows, time, "Cost of each phase"));
}

function breakEven(c) {
  const { trace, passes, emission, linking, compilation } = c.costs;
  const warm = trace + passes + emission + linking;
  const last = 10 ** Math.ceil(Math.log10(Math.max(100, 4 * (c.break_even ?? 1000))));
  const series = [
    ["eager", 0, c.eager_seconds, "var(--eager)", ""],
    ["compiled, nothing cached", warm + compilation, c.graph_seconds, "var(--graph)", ""],
    ["compiled, code on disk", warm, c.graph_seconds, "var(--warm)", "6 3"],
    ...c.devices.map((device, i) => [`on ${device.device}`, trace + passes + device.compile_seconds, device.seconds, deviceColour(i), "2 3"]),
  ];
  const total = ([, cost, seconds], count) => cost + count * seconds;
  return card("break-even", "Break-even", c.break_even === null ? "Each compiled call takes longer, so compiling never pays."
    : `After ${counted(c.break_even, "call")} the compiled function has taken less time in all, its compilation included.`,
  chart(240, "Total time over the number of calls", (svg, width, height) => {
    const [left, right, bottom, top] = [64, width - 8, height - 34, 10];
    const least = Math.min(...series.map((s) => total(s, 1)));
    const most = Math.max(...series.map((s) => total(s, last)));
    const x = (count) => left + ((right - left) * Math.log10(count)) / Math.log10(last);
    const y = (seconds) => bottom - ((bottom - top) * Math.log10(seconds / least)) / Math.log10(most / least);
    for (const count of powers(1, last)) {
      svg.append(shape("path", { class: "axis", d: `M${x(count)} ${top}V${bottom}` }),
        label(count >= 1e4 ? scaled(count, [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) : count, x(count), bottom + 14, { class: "quiet", "text-anchor": anchor(x(count), left, right) }));
    }
    for (const seconds of powers(least, most)) {
      svg.append(shape("path", { class: "axis", d: `M${left} ${y(seconds)}H${right}` }), label(time(seconds), left - 6, y(seconds) + 4, { class: "quiet", "text-anchor": "end" }));
    }
    svg.append(label("number of calls", (left + right) / 2, height - 4, { class: "quiet", "text-anchor": "middle" }));
    for (const entry of series) {
      const points = Array.from({ length: 65 }, (_, i) => last ** (i / 64));
      const path = points.map((count, i) => `${i ? "L" : "M"}${x(count).toFixed(1)} ${y(total(entry, count)).toFixed(1)}`).join("");
      svg.append(shape("path", { d: path, fill: "none", stroke: entry[3], "stroke-width": 2.5, "stroke-dasharray": entry[4] }));
    }
    for (const [count, entry] of [[c.break_even, series[1]], [c.break_even_warm, series[2]]]) {
      if (count === null || count < 1) continue;
      svg.append(shape("circle", { cx: x(count), cy: y(total(entry, count)), r: 5, fill: entry[3], stroke: "var(--text)" }));
    }
  }), legend(series.map(([name, , , colour]) => [name, colour])));
}

function roofline(view) {
  const c = view.data;
  const { bandwidth, peak } = DATA.device;
  const points = c.graph.filter((step) => step[OPERATIONS] > 0 && step[BYTES] > 0 && step[DURATION] > 0)
    .map((step) => ({ step, intensity: step[OPERATIONS] / step[BYTES], speed: (step[RUNS] * step[OPERATIONS]) / (step[DURATION] / 1e9) }));
  const section = card("roofline", "Speed and limits", `Each kernel against the limits measured on this CPU: ${rate(bandwidth, "B/s")} of memory and ${rate(peak, "op/s")}. `
    + "An operation is an addition; a kernel above the line reads from caches.");
  if (!points.length) {
    section.append(element("p", { class: "hint" }, "No step has work and memory traffic that are known."));
    return section;
  }
  const range = (values, least, most) => [10 ** Math.floor(Math.log10(Math.min(least, ...values))), 10 ** Math.ceil(Math.log10(Math.max(most, ...values)))];
  const [left0, right0] = range(points.map((p) => p.intensity), 0.1, 2 * peak / bandwidth);
  const [low, high] = range(points.map((p) => p.speed), peak / 1e3, peak);
  section.append(chart(240, "Operations per second over operations per byte", (svg, width, height) => {
    const [left, right, bottom, top] = [76, width - 8, height - 34, 10];
    const x = (intensity) => left + ((right - left) * Math.log10(intensity / left0)) / Math.log10(right0 / left0);
    const y = (speed) => bottom - ((bottom - top) * Math.log10(speed / low)) / Math.log10(high / low);
    for (const tick of powers(left0, right0)) {
      svg.append(shape("path", { class: "axis", d: `M${x(tick)} ${top}V${bottom}` }), label(rounded(tick), x(tick), bottom + 14, { class: "quiet", "text-anchor": anchor(x(tick), left, right) }));
    }
    for (const tick of powers(low, high)) {
      svg.append(shape("path", { class: "axis", d: `M${left} ${y(tick)}H${right}` }), label(rate(tick, "op/s"), left - 6, y(tick) + 4, { class: "quiet", "text-anchor": "end" }));
    }
    svg.append(label("operations per byte", (left + right) / 2, height - 4, { class: "quiet", "text-anchor": "middle" }));
    const corner = peak / bandwidth;
    const from = Math.max(left0, low / bandwidth);
    svg.append(shape("path", { d: `M${x(from)} ${y(from * bandwidth)}L${x(corner)} ${y(peak)}H${right}`, fill: "none", stroke: "var(--text)", "stroke-width": 2 }));
    for (const { step, intensity, speed } of points) {
      const mark = shape("circle", { cx: x(intensity), cy: y(speed), r: 5, fill: fill(step), stroke: "var(--text)" },
        shape("title", {}, `${step[NAME]} ${step[KERNEL]}: ${rate(speed, "op/s")}, ${rounded(intensity)} per byte`));
      if (step[LINES].length) mark.dataset.lines = step[LINES].join(" ");
      svg.append(mark);
    }
    const firstPoints = new Map(points.filter((p) => p.step[KERNEL]).reverse().map((p) => [p.step[KERNEL], p]));
    for (const { step, intensity, speed } of [...firstPoints.values()].slice(-12)) {
      svg.append(label(step[KERNEL], x(intensity) + 8, y(speed) + 4, { class: "quiet" }));
    }
  }));
  return section;
}

// The graph and its source

function graphs(view) {
  const stages = view.data.passes;
  const slider = element("input", { type: "range", min: 0, max: stages.length - 1, value: stages.length - 1, "aria-label": "pass" });
  const name = element("p", { class: "hint", "aria-live": "polite" });
  const picture = element("div", { class: "scroll picture", tabindex: 0 });
  function show() {
    const stage = stages[slider.value];
    const after = slider.value === "0" ? "The trace" : `After the pass "${stage.name}"`;
    name.textContent = `${after}, ${Number(slider.value) + 1} of ${stages.length}: ${counted(stage.nodes, "node")}. ${stage.reason}`;
    picture.innerHTML = stage.picture || "<p class='hint'>The picture of this pass is left out, to keep the page small.</p>";
    showFirstBox();
    view.mark();
  }
  /** Scroll a wide picture so that its first box is in the middle. */
  function showFirstBox() {
    const box = picture.querySelector(".box")?.getBoundingClientRect();
    if (box) picture.scrollLeft += box.left + box.width / 2 - picture.getBoundingClientRect().left - picture.clientWidth / 2;
  }
  new ResizeObserver(showFirstBox).observe(picture);
  const fit = button("fit", "fit the picture to the width", () => {
    fit.setAttribute("aria-pressed", picture.classList.toggle("fit"));
    showFirstBox();
  });
  fit.setAttribute("aria-pressed", false);
  slider.addEventListener("input", show);
  slider.setAttribute("aria-valuetext", "pass");
  const step = (offset) => () => { slider.value = Number(slider.value) + offset; show(); };
  const source = element("div", { class: "scroll source" }, ...view.data.sources.flatMap((block) => [
    element("h3", {}, block.file), ...block.rows.map(([line, text, number]) => {
      const row = element(number < 0 ? "div" : "button", { class: "row-of-source" }, element("b", {}, line), text);
      if (number >= 0) row.dataset.lines = number;
      return row;
    })]));
  const section = card("wide", "Graph", "Select a line or a box to see what belongs to it. The slider goes through the passes that changed the graph.",
    element("div", { class: "row" }, button("trace", "before all passes", () => { slider.value = 0; show(); }), button("‹", "previous pass", step(-1)), slider,
      button("›", "next pass", step(1)), button("runs", "after all passes", () => { slider.value = stages.length - 1; show(); }), fit),
    name, element("div", { class: "beside" }, picture, source));
  show();
  return section;
}

/** The kernels that steps run, each with its runs, time, bytes and lines in all. */
function kernelTotals(steps) {
  const totals = new Map();
  for (const step of steps) {
    const key = `${step[KERNEL]} ${step[NAME]}`;
    const total = totals.get(key) ?? { step, runs: 0, seconds: 0, bytes: 0, lines: new Set() };
    total.runs += step[RUNS];
    total.seconds += step[DURATION] / 1e9;
    total.bytes += step[RUNS] * step[BYTES];
    for (const line of step[LINES]) total.lines.add(line);
    totals.set(key, total);
  }
  return [...totals.values()];
}

function kernels(view) {
  const c = view.data;
  const title = "Kernels";
  const text = [c.listing, ...c.devices.map((device) => device.listing)].filter(Boolean).join("\n");
  if (!text) return card("wide", title, "The compiled call runs no loop nest.");
  const listing = element("pre", { class: "listing", tabindex: 0, "aria-label": "source of the kernels" });
  const starts = new Map();
  for (const line of text.split("\n")) {
    const row = element("span", {}, `${line}\n`);
    const name = /^def (k\d+)\(|^\/\/ (g\d+): /.exec(line)?.slice(1).find(Boolean);
    if (name) starts.set(name, row);
    listing.append(row);
  }
  const show = (name) => () => {
    listing.querySelector(".on")?.classList.remove("on");
    const row = starts.get(name);
    row.classList.add("on");
    listing.scrollTop = row.offsetTop - listing.offsetTop;
  };
  const steps = [c.graph, ...c.devices.map((device) => device.steps)].flat().filter((step) => starts.has(step[KERNEL]));
  const rows = kernelTotals(steps).map(({ step, runs, seconds, bytes, lines }) => element("tr", {},
    element("td", {}, swatch(fill(step)), button(step[KERNEL], `show the source of ${step[KERNEL]}`, show(step[KERNEL])), ` ${step[NAME].replaceAll("+", "+\u200b")}`),
    element("td", {}, runs.toLocaleString("en")), element("td", {}, time(seconds)), element("td", {}, size(bytes)),
    element("td", { class: "lines" }, [...lines].slice(0, 4).map((line) => view.line(line)).join(" "))));
  const head = element("tr", {}, ...["kernel", "runs", "time", "bytes", "lines"].map((name) => element("th", {}, name)));
  const onDevices = c.devices.length ? " Those of a device, g0 and so on, are OpenCL C." : "";
  return card("wide", title, `The loop nests as Python; the default backend compiles the same ones with LLVM.${onDevices} Time and bytes are those of all runs in a call. concrete.kernels has the whole program.`,
    element("div", { class: "beside halves" }, listing, element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "kernels" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)))));
}

function numbers(c) {
  return card("wide", "All figures", "What print(df.compare(...)) shows.", element("pre", { tabindex: 0 }, c.table));
}

// The page

const content = document.getElementById("content");
const choices = document.getElementById("choices");
const { device } = DATA;
document.getElementById("device").textContent = `CPU: ${device.name}, ${counted(device.threads, "thread")}; measured: ${rate(device.bandwidth, "B/s")} of memory, ${rate(device.peak, "op/s")} in matrix products`;
document.getElementById("footer").textContent = "Written by dualflow. The page loads nothing.";

const views = DATA.comparisons.map((comparison, index) => new View(comparison, index));
function show(index) {
  content.replaceChildren(views[index].root);
  [...choices.children].forEach((choice, i) => choice.setAttribute("aria-pressed", i === index));
}
if (views.length > 1) {
  DATA.comparisons.forEach((c, index) => choices.append(button(`${c.name}(${c.arguments}): ${rounded(c.speedup)}×`, "show this comparison", () => show(index))));
}
show(0);
