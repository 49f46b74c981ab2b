import { batch, type Signal, signal } from '@preact/signals';
import type {
  ApprovalRequest,
  InputPart,
  Item,
  ItemOf,
  PlanStep,
  TokenUsage,
  ToolOutcome,
  Turn,
  TurnError,
} from '../../../../protocol/index.ts';
import { GrowingMarkdown } from '../markdown/blocks.ts';

interface RowBase {
  /** Stable, also when the thread is read again. */
  readonly key: string;
  readonly turnId: string;
  /** Counts the visible changes of the row. */
  readonly version: Signal<number>;
}

export interface UserRow extends RowBase {
  readonly kind: 'user';
  readonly input: readonly InputPart[];
  /** Id that the client gave the message. */
  readonly messageId: string | undefined;
  /** ISO 8601. */
  readonly at: string;
}

export interface TextRow extends RowBase {
  readonly kind: 'answer' | 'thinking';
  readonly markdown: GrowingMarkdown;
  text: string;
  isStreaming: boolean;
  /** Whether the answer broke off and was requested again. */
  isWithdrawn: boolean;
  /** Height of a long answer that was drawn whole, CSS pixels: it keeps its place while it is drawn once more. */
  drawnPx: number | null;
}

/** Decision on an approval. */
export interface Decided {
  readonly decision: ItemOf<'approvalResponse'>['decision'];
  readonly decidedBy: ItemOf<'approvalResponse'>['decidedBy'];
  /** Program through which the user decided. */
  readonly client: string | undefined;
  /** ISO 8601. */
  readonly at: string;
}

/** A tool call with everything that belongs to it. */
export interface ToolRow extends RowBase {
  readonly kind: 'tool';
  readonly callId: string;
  tool: string;
  argumentsText: string;
  startedAt: string;
  /** Output of a command so far. */
  output: string | null;
  exitCode: number | undefined;
  /** Result for the model. */
  result: string | null;
  outcome: ToolOutcome | null;
  durationMs: number | undefined;
  approval: Pick<ApprovalRequest, 'requestId' | 'operation' | 'target'> | null;
  decided: Decided | null;
}

export interface PlanRow extends RowBase {
  readonly kind: 'plan';
  steps: readonly PlanStep[];
}

export interface NoticeRow extends RowBase {
  readonly kind: 'notice';
  readonly text: string;
}

export interface ErrorRow extends RowBase {
  readonly kind: 'error';
  readonly error: TurnError;
}

/** Foot of a turn that has ended. */
export interface EndRow extends RowBase {
  readonly kind: 'end';
  readonly status: Turn['status'];
  /** ISO 8601. */
  readonly at: string | undefined;
  readonly durationMs: number | undefined;
  readonly usage: TokenUsage | undefined;
  readonly interruptedBy: Turn['interruptedBy'];
}

export type Row = UserRow | TextRow | ToolRow | PlanRow | NoticeRow | ErrorRow | EndRow;

const base = (key: string, turnId: string): RowBase => ({ key, turnId, version: signal(0) });

export const touch = (row: Row): void => {
  row.version.value = row.version.peek() + 1;
};

/** Pause between two drawings of streamed text: a person does not read faster, and one token need not be drawn at once. */
const drawEveryMs = 100;
const growing = new Set<Row>();

/** Touches a row after a short pause, together with further changes. */
export function touchSoon(row: Row): void {
  if (growing.size === 0) setTimeout(touchGrowing, drawEveryMs);
  growing.add(row);
}

function touchGrowing(): void {
  const rows = [...growing];
  growing.clear();
  batch(() => {
    for (const row of rows) touch(row);
  });
}

export function textRow(item: ItemOf<'agentMessage' | 'reasoningContent'>): TextRow {
  const kind = item.type === 'agentMessage' ? 'answer' : 'thinking';
  const row: TextRow = {
    ...base(item.id, item.turnId),
    kind,
    text: '',
    markdown: new GrowingMarkdown(),
    isStreaming: item.status !== 'completed',
    isWithdrawn: item.discarded === true,
    drawnPx: null,
  };
  appendText(row, item.text);
  return row;
}

export function appendText(row: TextRow, piece: string): void {
  row.text += piece;
  row.markdown.append(piece);
}

export const keyOfCall = (turnId: string, callId: string): string => `call:${turnId}:${callId}`;

export function toolRow(turnId: string, callId: string, tool: string, startedAt: string): ToolRow {
  return {
    ...base(keyOfCall(turnId, callId), turnId),
    kind: 'tool',
    callId,
    tool,
    argumentsText: '',
    startedAt,
    output: null,
    exitCode: undefined,
    result: null,
    outcome: null,
    durationMs: undefined,
    approval: null,
    decided: null,
  };
}

/** Row of an item that has its own row; null for parts of a tool call. */
export function ownRow(item: Item): Row | null {
  const common = base(item.id, item.turnId);
  switch (item.type) {
    case 'userMessage':
      return { ...common, kind: 'user', input: item.input, messageId: item.messageId, at: item.createdAt };
    case 'agentMessage':
    case 'reasoningContent':
      return textRow(item);
    case 'plan':
      return { ...common, kind: 'plan', steps: item.steps };
    case 'systemNotice':
      return { ...common, kind: 'notice', text: item.text };
    case 'error':
      return { ...common, kind: 'error', error: item.error };
    default:
      return null;
  }
}

export function endRow({ id, status, startedAt, completedAt, tokenUsage, interruptedBy }: Turn): EndRow {
  // The duration is not negative, even if the clock was set back.
  const durationMs =
    completedAt === undefined ? undefined : Math.max(0, Date.parse(completedAt) - Date.parse(startedAt));
  return {
    ...base(`end:${id}`, id),
    kind: 'end',
    status,
    at: completedAt,
    durationMs,
    usage: tokenUsage,
    interruptedBy,
  };
}
