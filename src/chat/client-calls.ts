import type { ItemOf, RpcNotificationParams } from '../protocol/index.ts';

/** A call that the caller is to run. */
export interface ClientCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** A piece of a call: the first one says which tool is called, the others bring more of the arguments only. */
export interface CallPiece {
  /** Index of the call in the answer. */
  readonly index: number;
  readonly begins?: Pick<ClientCall, 'id' | 'name'>;
  readonly arguments: string;
}

type CompleteCall = Pick<ItemOf<'toolCall'>, 'callId' | 'tool' | 'source' | 'arguments'>;
type Writing = RpcNotificationParams<'item/toolCall/argumentsDelta'>;

interface Growing {
  readonly id: string;
  readonly name: string;
  arguments: string;
  isWhole: boolean;
}

/** Calls of the caller's own tools in one answer, sent piece by piece while the model writes them. */
export class ClientCalls {
  readonly #names: ReadonlySet<string>;
  readonly #emit: (piece: CallPiece) => void;
  #calls: Growing[] = [];
  /** Sent whole, once complete: their first piece had no name. Calls of the server's tools are among them until then. */
  readonly #unreported = new Set<string>();

  /** @param names of the caller's tools: no other call is its business */
  constructor(names: ReadonlySet<string>, emit: (piece: CallPiece) => void) {
    this.#names = names;
    this.#emit = emit;
  }

  /** Arguments written so far. */
  get all(): readonly ClientCall[] {
    return this.#calls;
  }

  /** The model writes the arguments of a call. */
  write({ itemId: id, tool, delta }: Writing): void {
    if (this.#names.size === 0 || this.#unreported.has(id)) return;
    const known = this.#indexOf(id);
    if (known < 0 && !this.#names.has(tool)) this.#unreported.add(id);
    else this.#grow(known < 0 ? this.#begin({ id, name: tool, arguments: '', isWhole: false }) : known, delta);
  }

  /** A call is whole. The pieces that were sent are its beginning. */
  complete({ callId: id, tool, source, arguments: whole }: CompleteCall): void {
    this.#unreported.delete(id);
    if (source !== 'client') return;
    const index = this.#indexOf(id);
    const known = this.#calls[index];
    if (!known) {
      this.#begin({ id, name: tool, arguments: whole, isWhole: true });
      return;
    }
    known.isWhole = true;
    this.#grow(index, whole.slice(known.arguments.length));
  }

  /** The answer broke off and is repeated. @returns whether pieces of a call were sent that will have no end */
  discard(): boolean {
    const whole = this.#calls.filter(({ isWhole }) => isWhole);
    const hasBroken = whole.length < this.#calls.length;
    this.#calls = whole;
    this.#unreported.clear();
    return hasBroken;
  }

  /** Ends the answer: an unfinished call is dropped. */
  end(): void {
    this.#calls = this.#calls.filter(({ isWhole }) => isWhole);
  }

  #begin(call: Growing): number {
    const index = this.#calls.push(call) - 1;
    this.#emit({ index, begins: { id: call.id, name: call.name }, arguments: call.arguments });
    return index;
  }

  #grow(index: number, delta: string): void {
    const call = this.#calls[index];
    if (!call || delta === '') return;
    call.arguments += delta;
    this.#emit({ index, arguments: delta });
  }

  #indexOf(id: string): number {
    return this.#calls.findIndex((call) => call.id === id);
  }
}
