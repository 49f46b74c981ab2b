import type { ModelEvent, ModelToolCall } from '../../model.ts';
import { callIdShape } from './dialect.ts';
import { isRecord, type Json, wordOf } from './json.ts';

interface Assembling {
  readonly position: number;
  readonly callId: string;
  /** Id that the upstream gave it, if any. */
  wireId: string | undefined;
  readonly wireIndex: number | undefined;
  name: string;
  arguments: string;
  /** Last characters of the arguments: to cut them from a long text copies it. */
  end: string;
  /** Opaque fields that Gemini wants back with the call. */
  extraContent: Readonly<Record<string, unknown>> | undefined;
}

type Emit = (event: ModelEvent) => void;

/**
 * Puts the tool calls of one answer together from their pieces, and emits each piece as it arrives. The interface gives
 * every piece an `index`, and the first one an `id` and a `name`; upstreams leave any of these out, repeat them, give two
 * calls one index, or write the arguments as an object.
 */
export class ToolCallAssembly {
  readonly #emit: Emit;
  /** Ids of earlier answers: an id must mean one call in the whole conversation. */
  readonly #takenIds: () => ReadonlySet<string>;
  readonly #calls: Assembling[] = [];
  /** Tables of the calls: a search for each of 50,000 calls would stop all conversations. */
  readonly #lastByIndex = new Map<number, Assembling>();
  readonly #firstByWireId = new Map<string, Assembling>();
  readonly #usedIds = new Set<string>();
  #taken: ReadonlySet<string> | undefined;
  #lastMadeId = 0;
  #outputBytes = 0;

  constructor(emit: Emit, takenIds: () => ReadonlySet<string>) {
    this.#emit = emit;
    this.#takenIds = takenIds;
  }

  get count(): number {
    return this.#calls.length;
  }

  /** `extra_content` by call id. */
  get extraContent(): Record<string, Record<string, unknown>> {
    return Object.fromEntries(
      this.#calls.flatMap(({ callId, extraContent }) => (extraContent ? [[callId, extraContent]] : [])),
    );
  }

  /** Bytes of names and arguments. */
  get outputBytes(): number {
    return this.#outputBytes;
  }

  /** Whether the last call looks as if pieces of it were missing. */
  get isTorn(): boolean {
    const last = this.#calls.at(-1);
    return last !== undefined && last.arguments !== '' && !isWholeJson(last.arguments);
  }

  /** `entries` of one chunk (`isWhole` false) or of a whole message, where every entry is a call of its own. */
  add(entries: readonly unknown[], isWhole: boolean): void {
    for (const [place, entry] of entries.entries()) {
      if (isRecord(entry)) this.#addPiece(entry, isWhole, place);
    }
  }

  /** Emits every call, now that all of its pieces are there. */
  end(): void {
    for (const { callId, name, arguments: args } of this.#calls) {
      const call: ModelToolCall = { callId, name: name || 'unknown', arguments: args || '{}' };
      this.#emit({ type: 'toolCall', call });
    }
  }

  #addPiece(entry: Json, isWhole: boolean, place: number): void {
    const fn = isRecord(entry['function']) ? entry['function'] : entry;
    const id = wordOf(entry['id']);
    const name = wordOf(fn['name']);
    const index = typeof entry['index'] === 'number' ? entry['index'] : undefined;
    const piece = textOfArguments(fn['arguments']);
    const known = isWhole ? undefined : this.#find({ id, name, index, piece, place });
    if (!known && name === undefined && id === undefined && piece === '') return;
    const call = known ?? this.#begin(id, name, index);
    if (isRecord(entry['extra_content'])) call.extraContent = entry['extra_content'];
    this.#extend(call, fn['arguments'], name, piece, !known);
  }

  #extend(call: Assembling, raw: unknown, name: string | undefined, piece: string, isNew: boolean): void {
    // A name in pieces: no known upstream sends one, but there is no other meaning.
    if (!isNew && name !== undefined && name !== call.name) call.name += name;
    // An object is the whole of the arguments, sent again with every piece.
    const argumentsDelta = typeof raw === 'string' || call.arguments === '' ? piece : '';
    if (!isNew && argumentsDelta === '') return;
    call.arguments += argumentsDelta;
    call.end = (call.end + argumentsDelta.slice(-16)).slice(-16);
    this.#outputBytes += Buffer.byteLength(argumentsDelta);
    const { position, callId } = call;
    this.#emit({ type: 'toolCallDelta', index: position, callId, name: call.name, argumentsDelta });
  }

  #begin(id: string | undefined, name = '', wireIndex: number | undefined): Assembling {
    const call: Assembling = {
      position: this.#calls.length,
      callId: this.#freeId(id),
      wireId: id,
      wireIndex,
      name,
      arguments: '',
      end: '',
      extraContent: undefined,
    };
    this.#calls.push(call);
    this.#usedIds.add(call.callId);
    if (wireIndex !== undefined) this.#lastByIndex.set(wireIndex, call);
    if (id !== undefined && !this.#firstByWireId.has(id)) this.#firstByWireId.set(id, call);
    this.#outputBytes += Buffer.byteLength(name);
    return call;
  }

  #freeId(wanted: string | undefined): string {
    this.#taken ??= this.#takenIds();
    const taken = this.#taken;
    const isFree = (id: string) => !taken.has(id) && !this.#usedIds.has(id);
    if (wanted !== undefined && callIdShape.test(wanted) && isFree(wanted)) return wanted;
    do this.#lastMadeId = Math.max(this.#lastMadeId, taken.size + this.#calls.length) + 1;
    while (!isFree(`call_${this.#lastMadeId}`));
    return `call_${this.#lastMadeId}`;
  }

  /** The call that a piece belongs to; undefined: it begins a new one. */
  #find(piece: Piece): Assembling | undefined {
    const { id, index } = piece;
    if (index !== undefined) {
      const call = this.#lastByIndex.get(index);
      return call && continuesByIndex(call, piece) ? this.#adopt(call, id) : undefined;
    }
    const call = id === undefined ? undefined : this.#firstByWireId.get(id);
    if (call) return call;
    const last = this.#calls.at(-1);
    return last && continuesLast(last, piece) ? this.#adopt(last, id) : undefined;
  }

  #adopt(call: Assembling, id: string | undefined): Assembling {
    call.wireId ??= id;
    if (id !== undefined && call.wireId === id && !this.#firstByWireId.has(id)) this.#firstByWireId.set(id, call);
    return call;
  }
}

interface Piece {
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly index: number | undefined;
  readonly piece: string;
  /** Position in its chunk. */
  readonly place: number;
}

/** Same index. Only a piece with a name can be another call: some upstreams make up a new id for every piece. */
function continuesByIndex(call: Assembling, { id, name, piece }: Piece): boolean {
  if (name === undefined) return true;
  const isTorn = call.arguments !== '' && !seemsWhole(call);
  if (id !== undefined && call.wireId !== undefined) return id === call.wireId || (name === call.name && isTorn);
  if (name !== call.name) return call.arguments === '';
  return call.arguments === '' || isTorn || !piece.startsWith('{');
}

/** No index. A new id or a new name begins a new call. */
function continuesLast(last: Assembling, { id, name, piece, place }: Piece): boolean {
  if (place > 0 || (id !== undefined && last.wireId !== undefined)) return false;
  if (name === undefined) return true;
  if (name !== last.name) return false;
  return last.arguments === '' ? piece !== '' : !(piece.startsWith('{') && seemsWhole(last));
}

function textOfArguments(raw: unknown): string {
  if (typeof raw === 'string') return raw;
  return raw === null || raw === undefined ? '' : JSON.stringify(raw);
}

/** Longest arguments that are parsed after each piece. */
const parsedChars = 65_536;

/** Most pieces end in the middle of a string: parsing each would take quadratic time. */
const endsLikeJson = (text: string): boolean => /[}\]"]\s*$/.test(text.slice(-16));

const seemsWhole = ({ arguments: text, end }: Assembling): boolean =>
  text.length > parsedChars ? endsLikeJson(end) : isWholeJson(text);

function isWholeJson(text: string): boolean {
  if (!endsLikeJson(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
