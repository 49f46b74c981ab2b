import * as v from 'valibot';
import type { TurnEvent } from '../client/index.ts';
import { dollars } from '../lib/index.ts';
import { PlanStep } from '../protocol/index.ts';
import type { Output } from './output.ts';
import { inLine } from './render.ts';

const ItemEvent = v.looseObject({
  item: v.looseObject({
    type: v.string(),
    callId: v.optional(v.string(), ''),
    tool: v.optional(v.string(), ''),
    source: v.optional(v.string(), 'builtin'),
    arguments: v.optional(v.string(), ''),
    outcome: v.optional(v.string(), ''),
    text: v.optional(v.string(), ''),
    steps: v.optional(v.array(PlanStep), []),
    durationMs: v.optional(v.number()),
  }),
});
const SystemEvent = v.looseObject({ message: v.string() });
const ResumedTurn = v.looseObject({ turn: v.looseObject({ resumes: v.optional(v.number(), 0) }) });

const SpentTurn = v.looseObject({
  tokenUsage: v.looseObject({ inputTokens: v.number(), outputTokens: v.number(), costUsd: v.number() }),
});

const widest = 100;
const narrowest = 20;
/** A hook's reason has at most 10,000 characters; several hooks can refuse one call. */
const maxRefusalChars = 40_000;

/** Tools that run immediately when called. Other tools are announced when they run: a question may come first. */
const neverAsking: ReadonlySet<string> = new Set(['SpawnSubagent', 'WebSearch']);

const signs = { pending: '☐', in_progress: '◐', completed: '☑' } as const;

/** Prints a line for each time that the turn was resumed by another agent server. Its notice names the calls of unknown outcome. */
function showResumption(output: Pick<Output, 'note'>): (event: TurnEvent) => void {
  let shown = 0;
  return (event) => {
    if (event.type !== 'other' || event.method !== 'turn/started') return;
    const parsed = v.safeParse(ResumedTurn, event.params);
    if (!parsed.success || parsed.output.turn.resumes <= shown) return;
    shown = parsed.output.turn.resumes;
    output.note('↻ The agent server was restarted; this turn goes on.');
  };
}

/** Prints the steps of the agent beside the answer, one line each, on standard error. */
export function showActivity(output: Pick<Output, 'note' | 'colors' | 'width'>): (event: TurnEvent) => void {
  const { dim, red, yellow, cyan } = output.colors;
  const note = (text: string) => output.note(inLine(text));
  const waits = showWaits(output);
  /** Calls that may need approval, as they will be announced, by their id. */
  const announced = new Map<string, string>();
  const announce = (callId: string) => {
    const words = announced.get(callId);
    announced.delete(callId);
    if (words !== undefined) note(words);
  };
  const resumption = showResumption(output);
  return (event) => {
    waits(event);
    resumption(event);
    if (event.type !== 'other') return;
    const isStart = event.method === 'item/started';
    if (!isStart && event.method !== 'item/completed') return;
    const parsed = v.safeParse(ItemEvent, event.params);
    if (!parsed.success) return;
    const { type, callId, tool, source, outcome, text, steps, durationMs = 0, arguments: args } = parsed.output.item;
    if (type === 'commandExecution') announce(callId);
    if (isStart) return;
    if (type === 'plan') for (const { step, status } of steps) note(`  ${signs[status]} ${short(step)}`);
    // The plan is more informative than its call.
    if (tool === 'UpdatePlan') return;
    if (type === 'toolCall') {
      announced.set(callId, `${cyan('▸')} ${tool} ${dim(short(argumentsOf(args)))}`);
      if (source === 'builtin' && neverAsking.has(tool)) announce(callId);
    }
    if (type === 'toolResult') {
      announce(callId);
      const sign = outcome === 'completed' ? dim('✓') : outcome === 'declined' ? yellow('–') : red('✖');
      const [first, ...further] = resultLines(text, durationMs, output.width);
      note(`  ${sign} ${dim(first ?? '')}`);
      for (const line of further) note(`    ${dim(line)}`);
    }
  };
}

const Discarded = v.looseObject({ itemIds: v.array(v.string()) });

/** Items that an event withdraws: parts of an answer that broke off. */
export function discardedIn(event: TurnEvent): readonly string[] {
  if (event.type !== 'other' || event.method !== 'item/discarded') return [];
  const parsed = v.safeParse(Discarded, event.params);
  return parsed.success ? parsed.output.itemIds : [];
}

/** Prints why a turn waits or changes its course: withdrawn answers, retries, fallbacks, compactions, budgets. */
export function showWaits(output: Pick<Output, 'note' | 'colors'>): (event: TurnEvent) => void {
  const said = new Set<string>();
  return (event) => {
    if (event.type === 'message') said.add(event.itemId);
    if (discardedIn(event).some((itemId) => said.has(itemId))) {
      output.note(output.colors.dim('· The unfinished answer above is withdrawn.'));
    }
    if (event.type !== 'other' || event.method !== 'system/event') return;
    const { message } = v.parse(SystemEvent, event.params);
    output.note(output.colors.dim(inLine(`· ${message}`)));
  };
}

/** Tokens and cost of a turn in one line; undefined for a free turn and for one of unknown cost. */
export function spentIn(turn: Readonly<Record<string, unknown>>): string | undefined {
  const parsed = v.safeParse(SpentTurn, turn);
  if (!parsed.success || parsed.output.tokenUsage.costUsd === 0) return undefined;
  const { inputTokens, outputTokens, costUsd } = parsed.output.tokenUsage;
  return `· ${inputTokens} tokens in, ${outputTokens} out, ${dollars(costUsd)}`;
}

/** Values only: `{"path":"a.ts","limit":5}` is `a.ts 5`. Lists and objects stay JSON. */
function argumentsOf(json: string): string {
  try {
    const args: unknown = JSON.parse(json);
    const wordOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
    return typeof args === 'object' && args !== null ? Object.values(args).map(wordOf).join(' ') : wordOf(args);
  } catch {
    return json;
  }
}

/** The first line of a result; all lines of a refusal by a hook or rule of the user, which says what to change. */
function resultLines(text: string, ms: number, width: number): string[] {
  const end = ` (${ms} ms)`;
  if (!text.startsWith('Error: refused')) return [`${short(text)}${end}`];
  const most = Math.min(widest, Math.max(narrowest, width - 4));
  const words = new RegExp(`\\S.{0,${most - 1}}(?=\\s|$)|\\S.{0,${most - 1}}`, 'gu');
  return `${text.trim().slice(0, maxRefusalChars)}${end}`.match(words) ?? [];
}

function short(text: string): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line.length > widest ? `${line.slice(0, widest)}…` : line;
}
