/** A new element with attributes and children. */
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const content = document.getElementById("content");
const describe = ({ name, dtype, shape }) => `${name}: ${dtype}${typeof shape === "string" ? shape : shown(shape)}`;
document.getElementById("signature").textContent =
  `${DESCRIPTION.inputs.map(describe).join(", ") || "no inputs"} → ${DESCRIPTION.outputs.map(describe).join(", ")}`;

/** Runs the model; an error is shown in the element `place`, and the result is then null. */
function resultsOf(model, inputs, place) {
  place.textContent = "";
  try {
    return model.run(inputs());
  } catch (error) {
    place.textContent = error.message;
    return null;
  }
}

// Models of images: a canvas to draw on, and the probabilities of the classes

/** Scores as probabilities: as they are if they are that already, or else their softmax. */
function probabilities(scores) {
  const sum = scores.reduce((x, y) => x + y, 0);
  if (scores.every((x) => x >= 0 && x <= 1) && Math.abs(sum - 1) < 1e-3) return scores;
  const largest = Math.max(...scores);
  const powers = scores.map((x) => Math.exp(x - largest));
  const total = powers.reduce((x, y) => x + y, 0);
  return powers.map((x) => x / total);
}

/** The bounding box of what is drawn: left, top, right and bottom; null if there is nothing. */
function boundingBox({ data, width: columns, height: rows }) {
  let [left, top, right, bottom] = [columns, rows, -1, -1];
  for (let y = 0; y < rows; y++) {
    for (let x = 0; x < columns; x++) {
      if (data[4 * (y * columns + x)] > 64) {
        [left, right] = [Math.min(left, x), Math.max(right, x)];
        [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      }
    }
  }
  return right < 0 ? null : [left, top, right + 1, bottom + 1];
}

/** The drawing as side * side numbers from 0 to 1: centred, and as large as the images of digit data sets. */
function pixelsOf(canvas, side) {
  const pixels = new Float32Array(side * side);
  const box = boundingBox(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height));
  if (box === null) return pixels;
  const [left, top, right, bottom] = box;
  const fine = 8 * side;
  const scale = ((side < 20 ? 1 : 20 / 28) * fine) / Math.max(right - left, bottom - top);
  const [across, down] = [(right - left) * scale, (bottom - top) * scale];
  const context = element("canvas", { width: fine, height: fine }).getContext("2d", { willReadFrequently: true });
  context.drawImage(
    canvas, left, top, right - left, bottom - top, (fine - across) / 2, (fine - down) / 2, across, down,
  );
  const { data } = context.getImageData(0, 0, fine, fine);
  for (let i = 0; i < fine * fine; i++) {
    pixels[Math.floor(i / fine / 8) * side + Math.floor((i % fine) / 8)] += (data[4 * i] * data[4 * i + 3]) / 255 / 255 / 64;
  }
  return pixels;
}

function showPixels(canvas, pixels, side) {
  const image = new ImageData(side, side);
  pixels.forEach((x, i) => image.data.set([255 * x, 255 * x, 255 * x, 255], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/**
 * Lets the pointer draw on a canvas, and the keyboard: arrows move the pen, which `mark` shows; space lowers and
 * lifts it. Returns the function that clears the canvas.
 */
function enableDrawing(canvas, mark, thickness, changed) {
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const pen = { x: canvas.width / 2, y: canvas.height / 2, down: false };
  Object.assign(context, { lineWidth: thickness, lineCap: "round", lineJoin: "round", strokeStyle: "#fff" });
  const moveTo = (x, y) => {
    Object.assign(pen, { x, y });
    Object.assign(mark.style, { left: `${(100 * x) / canvas.width}%`, top: `${(100 * y) / canvas.height}%` });
  };
  const lineTo = (x, y) => {
    context.beginPath();
    context.moveTo(pen.x, pen.y);
    context.lineTo(x, y);
    context.stroke();
    moveTo(x, y);
    changed();
  };
  const position = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return [((event.clientX - left) * canvas.width) / width, ((event.clientY - top) * canvas.height) / height];
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = position(event);
    canvas.setPointerCapture(event.pointerId);
    pen.down = true;
    moveTo(x, y);
    lineTo(x, y);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!canvas.hasPointerCapture(event.pointerId)) return;
    for (const move of event.getCoalescedEvents?.() ?? [event]) lineTo(...position(move));
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { pen.down = false; });
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (step === undefined && event.key !== " ") return;
    event.preventDefault();
    if (event.key === " ") pen.down = !pen.down;
    const [x, y] = [pen.x + 8 * (step?.[0] ?? 0), pen.y + 8 * (step?.[1] ?? 0)];
    (pen.down ? lineTo : moveTo)(Math.min(Math.max(x, 0), canvas.width), Math.min(Math.max(y, 0), canvas.height));
  });
  return () => {
    context.clearRect(0, 0, canvas.width, canvas.height);
    pen.down = false;
    moveTo(canvas.width / 2, canvas.height / 2);
    changed();
  };
}

function imagePage(model) {
  const { input, output, shape, side } = IMAGE;
  const drawing = element("canvas", {
    id: "drawing", width: 280, height: 280, tabindex: 0, role: "img",
    "aria-label": "Drawing area. Arrow keys move the pen, space lowers and lifts it.",
  });
  const seen = element("canvas", { id: "pixels", width: side, height: side, role: "img", "aria-label": "The model's input" });
  const white = element("select", { id: "white", title: "The number of a white pixel; a black one is 0." });
  for (const number of [1, 16, 255]) white.append(element("option", { value: number }, `0 to ${number}`));
  white.value = side === 8 ? "16" : "1";
  const guess = element("p", { class: "guess", id: "guess", "aria-live": "polite" });
  const bars = element("ul", { class: "bars", id: "bars" });
  const error = element("p", { class: "error", role: "alert" });
  const clear = element("button", { type: "button" }, "Clear");
  const update = () => {
    const pixels = pixelsOf(drawing, side);
    showPixels(seen, pixels, side);
    const type = TYPES[DESCRIPTION.inputs[0].dtype];
    const results = resultsOf(
      model, () => ({ [input]: { data: type.from(pixels, (x) => x * Number(white.value)), shape } }), error,
    );
    if (results === null) return;
    const shares = probabilities([...results[output].data]);
    const best = shares.indexOf(Math.max(...shares));
    const drawn = pixels.some((x) => x > 0);
    guess.replaceChildren(...(drawn ? ["This is a ", element("strong", {}, String(best)), "."] : ["Draw with the pointer."]));
    bars.replaceChildren(...shares.map((share, i) => {
      const percent = drawn ? 100 * share : 0;
      return element(
        "li", drawn && i === best ? { class: "best" } : {}, element("span", {}, String(i)),
        element("span", { class: "track" }, element("div", { class: "bar", style: `width: ${percent.toFixed(1)}%` })),
        element("span", { class: "share" }, drawn ? `${percent.toFixed(1)} %` : "–"),
      );
    }));
  };
  const mark = element("span", { class: "pen" });
  clear.addEventListener("click", enableDrawing(drawing, mark, side < 20 ? 32 : 20, update));
  white.addEventListener("change", update);
  const tools = element("div", { class: "row" }, clear, seen, element("label", { class: "hint" }, "Pixels ", white));
  const hint = element("p", { class: "hint" }, "Keyboard: arrow keys move the pen, space lowers and lifts it.");
  const left = element("section", { class: "card" }, element("div", { class: "pad" }, drawing, mark), tools, hint);
  content.append(element("div", { class: "columns" }, left, element("section", { class: "card" }, guess, bars, error)));
  update();
}

// Other models: a field for each input, and tables of the outputs

/** The numbers in a text, separated by spaces, commas or new lines. */
function numbersIn(name, text, dtype, count) {
  const words = text.split(/[\s,;[\]()]+/).filter((word) => word !== "");
  if (words.length !== count) throw new RangeError(`${name} needs ${count} numbers, and has ${words.length}.`);
  const big = dtype.endsWith("int64");
  const numbers = words.map((word) => {
    const number = { true: 1, false: 0 }[word.toLowerCase()] ?? Number(word);
    const whole = !dtype.includes("int") || Number.isInteger(number);
    if ((Number.isNaN(number) && word.toLowerCase() !== "nan") || !whole) {
      throw new RangeError(`${name} has ${word}, which is no ${dtype}.`);
    }
    return big ? BigInt(word) : number;
  });
  return TYPES[dtype].from(numbers);
}

const valueText = (x) => (typeof x === "bigint" || Number.isInteger(x) ? String(x) : String(Number(x.toPrecision(6))));

/** A table of at most 50 rows and 20 columns; tensors of more axes have a row for each last axis. */
function tableOf({ data, shape }, dtype) {
  const columns = (shape.at(-1) ?? 1) * width(dtype);
  const rows = columns ? data.length / columns : 0;
  const body = Array.from({ length: Math.min(rows, 50) }, (_, i) => {
    const cells = [...data.subarray(i * columns, i * columns + Math.min(columns, 20))];
    return element("tr", {}, element("th", {}, String(i)), ...cells.map((x) => element("td", {}, valueText(x))));
  });
  const rest = rows > 50 || columns > 20 ? [element("p", { class: "hint" }, "The first 50 rows and 20 columns.")] : [];
  return element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...body)), ...rest);
}

const randomNumber = (dtype) => (dtype.includes("int") ? Math.floor(2 * Math.random()) : (2 * Math.random() - 1).toFixed(3));

function formPage(model) {
  const sizes = DESCRIPTION.sizes.map((name) => {
    const field = element("input", { type: "number", min: 0, value: 1, id: name });
    return { name, field, label: element("label", {}, `${name} `, field) };
  });
  const shapeOf = ({ shape }) =>
    shape.map((size) => (typeof size === "string" ? Number(sizes.find((x) => x.name === size).field.value) : size));
  const fields = DESCRIPTION.inputs.map((input) => {
    const field = element("textarea", { id: `input_${input.name}`, rows: 4, spellcheck: "false" });
    return { input, field, label: element("label", { for: field.id }, element("h2", {}, describe(input))) };
  });
  const fill = (next) => fields.forEach(({ input, field }) => {
    const shape = shapeOf(input);
    const columns = (shape.at(-1) ?? 1) * width(input.dtype);
    const rows = columns ? (product(shape) * width(input.dtype)) / columns : 0;
    const row = () => Array.from({ length: columns }, () => next(input.dtype)).join(" ");
    field.value = Array.from({ length: rows }, row).join("\n");
  });
  const error = element("p", { class: "error", role: "alert" });
  const outputs = element("div", { id: "outputs", "aria-live": "polite" });
  const inputs = () => Object.fromEntries(fields.map(({ input, field }) => {
    const shape = shapeOf(input);
    const data = numbersIn(input.name, field.value, input.dtype, product(shape) * width(input.dtype));
    return [input.name, { data, shape }];
  }));
  const run = () => {
    outputs.replaceChildren();
    const results = resultsOf(model, inputs, error);
    if (results === null) return;
    outputs.replaceChildren(...DESCRIPTION.outputs.map(({ name, dtype }) => {
      const title = describe({ name, dtype, shape: results[name].shape });
      return element("section", { class: "card" }, element("h2", {}, title), tableOf(results[name], dtype));
    }));
  };
  const button = element("button", { type: "submit", class: "main" }, "Run");
  const random = element("button", { type: "button" }, "Random numbers");
  const zeros = element("button", { type: "button" }, "Zeros");
  const buttons = element("div", { class: "row" }, button, random, zeros);
  const form = element("form", { class: "card" });
  if (sizes.length) form.append(element("div", { class: "row" }, ...sizes.map((x) => x.label)));
  for (const { label, field } of fields) form.append(label, field);
  form.append(buttons, error);
  form.addEventListener("submit", (event) => { event.preventDefault(); run(); });
  form.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.ctrlKey) run(); });
  random.addEventListener("click", () => { fill(randomNumber); run(); });
  zeros.addEventListener("click", () => { fill(() => 0); run(); });
  for (const { field } of sizes) field.addEventListener("change", () => fill(() => 0));
  content.append(form, outputs);
  fill(() => 0);
  run();
}

const bytes = Uint8Array.from(atob(MODULE), (character) => character.charCodeAt(0));
const model = await load(bytes);
if (IMAGE) imagePage(model);
else formPage(model);
document.documentElement.dataset.state = "ready";
