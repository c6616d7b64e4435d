const TYPES = {
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
  float32: Float32Array, float64: Float64Array, complex64: Float32Array, complex128: Float64Array,
};
const ALIGNMENT = 64;
const PAGE = 65536;

/** The functions for rare arguments, such as the sine of a huge number, which the module imports. */
const MATHS = {
  sin: Math.sin, cos: Math.cos, tan: Math.tan, fmod: (x, y) => x % y,
  sinf: Math.sin, cosf: Math.cos, tanf: Math.tan, fmodf: (x, y) => x % y,
};

/** The elements of an array for each element of a tensor: a complex number has two. */
const width = (dtype) => (dtype.startsWith("complex") ? 2 : 1);
const product = (sizes) => sizes.reduce((x, y) => x * y, 1);
const aligned = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
const shown = (shape) => `[${shape.join(", ")}]`;

/** A compiled model. Calls use its memory one after another; each result is a copy. */
export class Model {
  #exports;

  constructor(exports) {
    this.#exports = exports;
  }

  /** The name, dtype and shape of each input; names in a shape are sizes that the caller chooses. */
  get inputs() {
    return DESCRIPTION.inputs;
  }

  /** The name, dtype and shape (as text) of each output. */
  get outputs() {
    return DESCRIPTION.outputs;
  }

  /**
   * Runs the model.
   *
   * @param {Object} inputs for each input its typed array, whose length determines a dynamic size; or
   *     {data, shape}, with sizes in row-major order. Arrays of variables are updated in place.
   * @returns {Object} for each output {data, shape}
   * @throws {TypeError} an input is missing, or has another type
   * @throws {RangeError} an input has another shape
   * @throws {Error} a check of the model failed; the message is that of the model
   */
  run(inputs) {
    const unknown = Object.keys(inputs).filter((name) => !DESCRIPTION.inputs.some((x) => x.name === name));
    if (unknown.length) {
      throw new TypeError(`${DESCRIPTION.name} has no input ${unknown[0]}; it takes ${names()}.`);
    }
    const sizes = new Map();
    const tensors = DESCRIPTION.inputs.map((input) => tensorOf(input, inputs[input.name], sizes));
    const numbers = DESCRIPTION.sizes.map((name) => sizes.get(name));
    const shapes = outputShapes(...numbers);
    const outputs = DESCRIPTION.outputs.map(({ name, dtype }, i) => ({ name, dtype, shape: shapes[i] }));
    const integers = numbers.map(BigInt);
    const workspace = this.#exports[`${DESCRIPTION.name}_workspace`](...integers);
    const regions = [...tensors.map((x) => x.data.byteLength), ...outputs.map(byteLength), workspace];
    const addresses = this.#reserve(regions);
    const memory = this.#exports.memory;
    tensors.forEach(({ data }, i) => new data.constructor(memory.buffer, addresses[i], data.length).set(data));
    const outputAddresses = addresses.slice(tensors.length, -1);
    this.#check(this.#exports[DESCRIPTION.name](
      ...addresses.slice(0, tensors.length), ...integers, ...outputAddresses, addresses.at(-1),
    ));
    const copied = (type, address, length) => new type(memory.buffer, address, length).slice();
    tensors.forEach(({ data, updated }, i) => {
      if (updated) data.set(copied(data.constructor, addresses[i], data.length));
    });
    return Object.fromEntries(outputs.map(({ name, dtype, shape }, i) => {
      const data = copied(TYPES[dtype], outputAddresses[i], product(shape) * width(dtype));
      return [name, { data, shape }];
    }));
  }

  /** The addresses of regions of so many bytes, one after another; the memory grows as needed. */
  #reserve(regions) {
    let end = aligned(this.#exports.__heap_base.value);
    const addresses = regions.map((bytes) => {
      const address = end;
      end += aligned(bytes);
      return address;
    });
    const memory = this.#exports.memory;
    const missing = end - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE));
    return addresses;
  }

  /** Throws the message of a failed check. */
  #check(status) {
    if (status === 0) return;
    const address = this.#exports[`${DESCRIPTION.name}_message`](status);
    const bytes = new Uint8Array(this.#exports.memory.buffer);
    throw new Error(new TextDecoder().decode(bytes.subarray(address, bytes.indexOf(0, address))));
  }
}

const names = () => DESCRIPTION.inputs.map((x) => x.name).join(", ") || "none";
const byteLength = ({ dtype, shape }) => product(shape) * width(dtype) * TYPES[dtype].BYTES_PER_ELEMENT;

/** The typed array of an input; its dynamic sizes are added to `sizes`. */
function tensorOf(input, value, sizes) {
  const { name, dtype, updated } = input;
  const type = TYPES[dtype];
  const data = ArrayBuffer.isView(value) ? value : value?.data;
  if (!(data instanceof type)) {
    const actual = value === undefined ? "missing" : (data ?? value)?.constructor?.name ?? String(value);
    throw new TypeError(`the input ${name} is ${actual}; ${DESCRIPTION.name} takes a ${type.name} (${dtype}).`);
  }
  const count = data.length / width(dtype);
  const expected = input.shape.map((size) => (typeof size === "string" ? sizes.get(size) ?? size : size));
  const shape = value.shape ?? inferred(name, expected, count);
  if (product(shape) !== count) {
    throw new RangeError(`the input ${name} has ${count} elements, which is not the shape ${shown(shape)}.`);
  }
  const fits = (size, i) => typeof size === "string" || size === shape[i];
  if (shape.length !== expected.length || !expected.every(fits)) {
    throw new RangeError(`the input ${name} has shape ${shown(shape)}; ${DESCRIPTION.name} takes ${shown(expected)}.`);
  }
  expected.forEach((size, i) => typeof size === "string" && sizes.set(size, shape[i]));
  return { data, updated };
}

/** The shape of an array of `count` elements, of which one size may be open. */
function inferred(name, expected, count) {
  const open = expected.filter((size) => typeof size === "string");
  if (open.length > 1) {
    throw new RangeError(`the input ${name} has the dynamic sizes ${open.join(", ")}: pass {data, shape}.`);
  }
  const size = count / product(expected.filter((x) => typeof x === "number"));
  if (open.length ? !Number.isInteger(size) : size !== 1 && product(expected) !== count) {
    throw new RangeError(
      `the input ${name} has ${count} elements; ${DESCRIPTION.name} takes the shape ${shown(expected)}.`,
    );
  }
  return expected.map((x) => (typeof x === "string" ? size : x));
}

/**
 * Loads the model.
 *
 * @param source the WebAssembly module: its URL, by default of the file beside this one; its bytes; or a
 *     WebAssembly.Module
 * @returns {Promise<Model>}
 */
export async function load(source = new URL(`./${DESCRIPTION.name}.wasm`, import.meta.url)) {
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(await bytesOf(source));
  return new Model((await WebAssembly.instantiate(module, { env: MATHS })).exports);
}

async function bytesOf(source) {
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return source;
  const url = new URL(source, import.meta.url);
  if (url.protocol === "file:" && typeof process !== "undefined") {
    return (await import("node:fs/promises")).readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} can't be read: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}
