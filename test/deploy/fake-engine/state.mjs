/** State of the fake engine between two of its commands, in files of its directory. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The command that is being carried out; see `EngineCall` in `docker.d.mts`. */
export const calls = new AsyncLocalStorage();
export const call = () => calls.getStore();

export const place = (...names) => join(call().directory, ...names);

export const scenario = () => JSON.parse(readFileSync(place('scenario.json'), 'utf8'));
export const readState = () => JSON.parse(readFileSync(place('state.json'), 'utf8'));

/** Reads the state, has it changed and writes it: readers see all of a change or nothing. Returns the result of `change`. */
export function changeState(change) {
  const state = readState();
  const result = change(state);
  writeFileSync(place('state.half'), JSON.stringify(state));
  renameSync(place('state.half'), place('state.json'));
  return result;
}

export function record(made) {
  appendFileSync(place('calls.jsonl'), `${JSON.stringify(made)}\n`);
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
