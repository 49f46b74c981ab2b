import type { DelegatedCall } from '../agent/index.ts';
import { shellWord } from '../lib/index.ts';
import type { ToolCallUpdate, ToolContent } from './messages.ts';

const maxTitle = 500;
const maxResult = 100_000;

/** Names of our own tools for calls of the same kind, so that clients show them alike. */
const toolNames: Readonly<Record<string, string>> = {
  execute: 'Exec',
  edit: 'EditFile',
  delete: 'DeleteFile',
  move: 'MoveFile',
  read: 'ReadFile',
  search: 'GrepFiles',
  fetch: 'WebFetch',
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A call as far as the agent has reported it. Updates hold only changed fields, and may come before the call itself. */
export class KnownCall {
  readonly callId: string;
  title = '';
  #kind = 'other';
  status = 'pending';
  #input: Readonly<Record<string, unknown>> = {};
  #output: unknown;
  #content: readonly ToolContent[] = [];
  #paths: readonly string[] = [];
  /** Output of a terminal of the agent's own, as some agents show it. */
  #terminal = '';
  exitCode: number | undefined;

  constructor(callId: string) {
    this.callId = callId;
  }

  /** Merges an update. @returns new output of a command */
  merge({ title, kind, status, rawInput, rawOutput, content, locations, _meta }: ToolCallUpdate): string {
    if (title) this.title = title.slice(0, maxTitle);
    if (kind) this.#kind = kind;
    if (status) this.status = status;
    if (isObject(rawInput) && Object.keys(rawInput).length > 0) this.#input = rawInput;
    if (rawOutput !== undefined && rawOutput !== null) this.#output = rawOutput;
    if (locations) this.#paths = locations.flatMap(({ path }) => (path ? [path] : []));
    // Most updates add a piece: comparing the whole for each of them would be slow.
    if (!content && this.#terminal !== '' && !isObject(_meta?.['terminal_output'])) return this.#takePiece(_meta ?? {});
    if (!content && !_meta) return '';
    const before = this.#shownOutput;
    if (content) this.#content = content;
    if (_meta) this.#takeTerminal(_meta);
    const after = this.#shownOutput;
    return after.startsWith(before) ? after.slice(before.length) : '';
  }

  /** Drops the agent’s data of this call once its end is reported: a turn may have many calls. */
  release(): void {
    this.#input = {};
    this.#output = undefined;
    this.#content = [];
    this.#terminal = '';
  }

  /** Kind in the words of the protocol. Some agents give the command of a call and no kind. */
  get kind(): string {
    return this.#kind === 'other' && this.#given !== undefined ? 'execute' : this.#kind;
  }

  /** Whether the effect of the call is known. */
  get isReportable(): boolean {
    if (this.isOver) return true;
    if (this.kind === 'edit') return this.#diffs.length > 0;
    return this.kind === 'execute' ? this.#given !== undefined : Object.keys(this.#input).length > 0;
  }

  get isOver(): boolean {
    return this.status === 'completed' || this.status === 'failed';
  }

  /** Command of the call; undefined: none. */
  get command(): string | undefined {
    return this.kind === 'execute' ? (this.#given ?? this.title) : undefined;
  }

  get #given(): string | undefined {
    const { command, cmd, args } = this.#input;
    const given = command ?? cmd;
    if (Array.isArray(given)) return given.map((word) => shellWord(String(word))).join(' ');
    if (typeof given !== 'string' || given === '') return undefined;
    return Array.isArray(args) && args.length > 0 ? [given, ...args.map(String)].map(shellWord).join(' ') : given;
  }

  get paths(): readonly string[] {
    if (this.#paths.length > 0) return this.#paths;
    return this.#diffs.flatMap(({ path }) => (path ? [path] : []));
  }

  get result(): string {
    const text = this.#shownOutput || textOf(this.#output);
    return text.slice(0, maxResult);
  }

  /** The call in its form for the thread. */
  shown(): DelegatedCall {
    const { command, callId } = this;
    const [diff] = this.#diffs;
    const args =
      command !== undefined
        ? { command }
        : diff
          ? { path: diff.path, oldText: diff.oldText ?? '', newText: diff.newText ?? '' }
          : { ...(this.title && { title: this.title }), ...this.#input };
    return { callId, tool: toolNames[this.kind] ?? (this.title || 'Tool'), arguments: args, command };
  }

  get #diffs(): readonly ToolContent[] {
    return this.#content.filter(({ type }) => type === 'diff');
  }

  get #shownOutput(): string {
    if (this.#terminal !== '') return this.#terminal;
    return this.#content
      .flatMap(({ type, content }) => (type === 'content' && content?.text ? [content.text] : []))
      .join('\n');
  }

  /** `terminal_output` is the whole, `terminal_output_delta` a piece of it. */
  #takeTerminal(meta: Readonly<Record<string, unknown>>): void {
    const { terminal_output: whole } = meta;
    if (isObject(whole) && typeof whole['data'] === 'string') this.#terminal = whole['data'].slice(0, maxResult);
    this.#takePiece(meta);
  }

  /** @returns the part of the piece that was added */
  #takePiece({ terminal_output_delta: piece, terminal_exit: exit }: Readonly<Record<string, unknown>>): string {
    if (isObject(exit) && typeof exit['exit_code'] === 'number') this.exitCode = exit['exit_code'];
    if (!isObject(piece) || typeof piece['data'] !== 'string') return '';
    const added = piece['data'].slice(0, maxResult - this.#terminal.length);
    this.#terminal += added;
    return added;
  }
}

function textOf(output: unknown): string {
  if (typeof output === 'string') return output;
  if (output === undefined) return '';
  const { output: text, stdout } = isObject(output) ? output : {};
  if (typeof text === 'string') return text;
  return typeof stdout === 'string' ? stdout : JSON.stringify(output);
}
