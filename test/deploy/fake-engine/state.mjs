/** State of the fake engine between two of its commands, in files of its directory. */
import { appendFileSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Set by the program on PATH, which knows where it is. */
const directory = globalThis.fakeEngineDirectory;
export const place = (...names) => join(directory, ...names);

export const scenario = () => JSON.parse(readFileSync(place('scenario.json'), 'utf8'));
export const readState = () => JSON.parse(readFileSync(place('state.json'), 'utf8'));

/** Reads the state, has it changed and writes it, with no other command in between. What `change` returns. */
export function changeState(change) {
  lock();
  try {
    const state = readState();
    const result = change(state);
    const temporary = place(`state.${process.pid}`);
    writeFileSync(temporary, JSON.stringify(state));
    renameSync(temporary, place('state.json'));
    return result;
  } finally {
    rmSync(place('lock'), { force: true });
  }
}

/** A link that names its holder, so that one that was killed holds nothing. */
function lock() {
  for (;;) {
    try {
      symlinkSync(String(process.pid), place('lock'));
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (!isHeld()) rmSync(place('lock'), { force: true });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  }
}

/** Also when it has just been released: the next one may have it already, and it is theirs then. */
function isHeld() {
  try {
    process.kill(Number(readlinkSync(place('lock'))), 0);
    return true;
  } catch (error) {
    return error.code !== 'ESRCH';
  }
}

export function record(call) {
  appendFileSync(place('calls.jsonl'), `${JSON.stringify(call)}\n`);
}

/** Ends the command as an engine does that failed. */
export class Failure extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A digest that looks like one, the same for the same text. */
export function digestOf(text) {
  const hex = Buffer.from(text).toString('hex').slice(-24);
  return `sha256:${hex.padStart(64, '0')}`;
}
