import { type ReadonlySignal, signal } from '@preact/signals';
import { contentWords } from '../../../../protocol/browser.ts';
import type { Item, Thread, Turn } from '../../../../protocol/index.ts';
import {
  appendText,
  endRow,
  keyOfCall,
  ownRow,
  type Row,
  type ToolRow,
  textRow,
  toolRow,
  touch,
  touchSoon,
} from './rows.ts';
import type { ServerMessage } from './rpc.ts';

const planTool = 'UpdatePlan';
/** Most characters of a running command's output; the whole output arrives at its end. */
const liveOutputChars = 200_000;

/**
 * Rows of one thread: its messages, calls and results. Notifications may come twice, and in part before the reading that contains
 * them: each sets the fields that it names, so the rows come out the same.
 */
export class Transcript {
  #rows: Row[] = [];
  #byKey = new Map<string, Row>();
  readonly #count = signal(0);
  readonly #hasOlder = signal(false);

  /** The rows now, oldest first. */
  get rows(): readonly Row[] {
    return this.#rows;
  }

  /** Counts changes of the list of rows; a change within a row is in its `version`. */
  get changes(): ReadonlySignal<number> {
    return this.#count;
  }

  get hasOlder(): ReadonlySignal<boolean> {
    return this.#hasOlder;
  }

  get isAtBeginning(): boolean {
    return !this.#hasOlder.peek();
  }

  /** The turn of the first row. */
  get oldestTurnId(): string | undefined {
    return this.#rows[0]?.turnId;
  }

  row(key: string): Row | undefined {
    return this.#byKey.get(key);
  }

  /** Row of a call. Some models give calls of later turns the same id. */
  tool(turnId: string, callId: string): ToolRow | undefined {
    const row = this.#byKey.get(keyOfCall(turnId, callId));
    return row?.kind === 'tool' ? row : undefined;
  }

  /** Shows this reading. Older rows stay when it continues them, so that a reader keeps their place. */
  replace({ turns = [], hasOlderTurns = false }: Pick<Thread, 'turns' | 'hasOlderTurns'>): void {
    const from = hasOlderTurns ? this.#rows.findIndex((row) => row.turnId === turns[0]?.id) : -1;
    this.#rows = this.#rows.slice(0, Math.max(0, from));
    this.#byKey = new Map(this.#rows.map((row) => [row.key, row]));
    if (this.#rows.length === 0) this.#hasOlder.value = hasOlderTurns;
    for (const turn of turns) this.#addTurn(turn);
    this.#changed();
  }

  /** Puts older turns before the rows. */
  prepend({ turns = [], hasOlderTurns = false }: Pick<Thread, 'turns' | 'hasOlderTurns'>): void {
    const newer = this.#rows;
    this.#rows = [];
    for (const turn of turns) if (newer[0]?.turnId !== turn.id) this.#addTurn(turn);
    this.#rows = [...this.#rows, ...newer];
    this.#hasOlder.value = hasOlderTurns && turns.length > 0;
    this.#changed();
  }

  /** Takes one notification of this thread. */
  take(message: ServerMessage): void {
    switch (message.method) {
      case 'item/started':
      case 'item/completed':
        this.#takeItem(message.params.item);
        return;
      case 'item/discarded':
        for (const itemId of message.params.itemIds) this.#discard(itemId);
        return;
      case 'item/agentMessage/delta':
      case 'item/reasoning/delta':
        this.#grow(message.params.itemId, message.params.delta);
        return;
      case 'item/commandExecution/outputDelta':
        this.#growOutput(message.params.itemId, message.params.delta);
        return;
      case 'turn/completed':
      case 'turn/failed':
      case 'turn/cancelled':
        this.#endTurn(message.params.turn);
        return;
      case 'turn/started':
        for (const item of message.params.turn.items) this.#takeItem(item);
        return;
      default:
        return;
    }
  }

  #addTurn(turn: Turn): void {
    for (const item of turn.items) this.#takeItem(item, false);
    if (turn.completedAt !== undefined) this.#put(endRow(turn), false);
  }

  #endTurn(turn: Turn): void {
    for (const item of turn.items) this.#takeItem(item, false);
    this.#put(endRow(turn), false);
    this.#changed();
  }

  #takeItem(item: Item, isNews = true): void {
    if (item.type === 'agentMessage' || item.type === 'reasoningContent') {
      this.#takeText(item, isNews);
      return;
    }
    const own = ownRow(item);
    if (own) {
      this.#put(own, isNews);
      return;
    }
    this.#takePart(item, isNews);
  }

  #takeText(item: Extract<Item, { type: 'agentMessage' | 'reasoningContent' }>, isNews: boolean): void {
    const known = this.#byKey.get(item.id);
    if (known?.kind !== 'answer' && known?.kind !== 'thinking') {
      this.#put(textRow(item), isNews);
      return;
    }
    known.isStreaming = item.status !== 'completed';
    known.isWithdrawn = item.discarded === true;
    if (item.text.startsWith(known.text)) appendText(known, item.text.slice(known.text.length));
    else this.#replaceRow(known, textRow(item));
    touch(known);
  }

  #replaceRow(old: Row, next: Row): void {
    this.#rows[this.#rows.lastIndexOf(old)] = next;
    this.#byKey.set(next.key, next);
    this.#changed();
  }

  /** A part of a tool call: the call, its command, its result, its approval. */
  #takePart(item: Item, isNews: boolean): void {
    if (!('callId' in item)) return;
    const tool = 'tool' in item ? item.tool : item.type === 'question' ? 'Question' : '';
    // The plan has a row of its own, unless the call has failed.
    if (tool === planTool && !(item.type === 'toolResult' && item.outcome === 'failed')) return;
    const known = this.tool(item.turnId, item.callId);
    const row = known ?? toolRow(item.turnId, item.callId, tool, item.createdAt);
    switch (item.type) {
      case 'toolCall':
        row.tool = item.tool;
        row.argumentsText = item.arguments;
        break;
      case 'commandExecution':
        row.output = item.output;
        row.exitCode = item.exitCode;
        this.#commands.set(item.id, row);
        if (row.argumentsText === '') row.argumentsText = JSON.stringify({ command: item.command });
        break;
      case 'toolResult':
        row.result = item.text;
        row.outcome = item.outcome;
        row.durationMs = item.durationMs;
        break;
      case 'question':
        // A call that waits for the answer has it in its result.
        if (known && known.tool !== tool) return;
        row.argumentsText = JSON.stringify({ from: item.from, message: item.message });
        row.result = item.answers ? contentWords(item.answers) : item.state;
        row.outcome = item.state === 'open' ? null : 'completed';
        break;
      case 'approvalRequest':
        row.approval = { requestId: item.requestId, operation: item.operation, target: item.target };
        break;
      case 'approvalResponse':
        row.decided = {
          decision: item.decision,
          decidedBy: item.decidedBy,
          client: item.client,
          at: item.createdAt,
        };
        break;
    }
    if (known) touch(known);
    else this.#put(row, isNews);
  }

  /** Rows of commands by the id of their item. */
  readonly #commands = new Map<string, ToolRow>();

  #grow(itemId: string, delta: string): void {
    const row = this.#byKey.get(itemId);
    if (row?.kind !== 'answer' && row?.kind !== 'thinking') return;
    if (!row.isStreaming) return;
    appendText(row, delta);
    touchSoon(row);
  }

  #discard(itemId: string): void {
    const row = this.#byKey.get(itemId);
    if (row?.kind !== 'answer' && row?.kind !== 'thinking') return;
    row.isWithdrawn = true;
    touch(row);
  }

  #growOutput(itemId: string, delta: string): void {
    const row = this.#commands.get(itemId);
    if (!row || row.outcome !== null) return;
    row.output = `${row.output ?? ''}${delta}`.slice(-liveOutputChars);
    touchSoon(row);
  }

  #put(row: Row, isNews: boolean): void {
    const known = this.#byKey.get(row.key);
    // Only a plan and the end of a turn are replaced; other rows are only repeated, as completed.
    if (known && row.kind !== 'plan' && row.kind !== 'end') return;
    if (known) {
      this.#replaceRow(known, row);
      return;
    }
    this.#byKey.set(row.key, row);
    this.#rows.push(row);
    if (isNews) this.#changed();
  }

  #changed(): void {
    this.#count.value = this.#count.peek() + 1;
  }
}
