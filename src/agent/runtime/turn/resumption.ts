import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Resumption } from '../../../../machines/index.ts';
import { resumedDelegationOf, resumedStateOf } from '../../../../machines/index.ts';
import { count } from '../../../lib/index.ts';
import type { ItemOf } from '../../../protocol/index.ts';
import type { Tool } from '../../tool.ts';
import { hashOfFile } from '../../tools/index.ts';
import type { StartedCall } from '../../turn-actor-store.ts';
import type { KnownResult } from './call-review.ts';
import type { TurnContext } from './context.ts';
import type { TurnThread } from './thread.ts';

/** A call without a result, and its fate in the earlier process. */
export interface ResumedCall {
  readonly item: ItemOf<'toolCall'>;
  /** Undefined: the call had not started. */
  readonly started: StartedCall | undefined;
  /** Result of a call that is not run again. */
  readonly known: KnownResult | undefined;
}

/** Calls of a resumed turn without a result, oldest first. A client answers a repeated call of its tool from memory. */
export async function resumedCalls({
  record,
  resumed,
  services,
  thread,
  place,
}: TurnContext): Promise<readonly ResumedCall[]> {
  const isOffered = (tool: string) => thread.tools().some(({ name, source }) => name === tool && source === 'dynamic');
  const started = thread.store.turnActors.calls(place.threadId, place.turnId);
  // A turn that is over runs no call: a command that still runs is ended with it.
  const isOver = resumed !== undefined && resumedStateOf(resumed.facts.state, true) === 'storing';
  return Promise.all(
    record.items.openCalls.map(async (item) => {
      const call = started.get(item.callId);
      if (call?.itemId !== item.id) return { item, started: undefined, known: undefined };
      const isKept = services.processes?.isKept?.({ ...place, callId: item.callId }) === true;
      if (!isOver && (isKept || (call.source === 'dynamic' && isOffered(call.tool))))
        return { item, started: call, known: undefined };
      const output = record.items.last('commandExecution', ({ callId }) => callId === item.callId)?.output ?? '';
      return { item, started: call, known: await resultOf(call, output, thread) };
    }),
  );
}

/** Result of a started call; undefined if it can run. The tools themselves finish kept commands, resumed sub-agents and work in other processes. */
async function resultOf(
  { tool, kind, file, subagent, handle, result }: StartedCall,
  output: string,
  { isSubagentLost }: TurnThread,
): Promise<KnownResult | undefined> {
  if (kind === 'subagent' && !(subagent && isSubagentLost(subagent))) return undefined;
  if (result && !file) return result;
  if (handle !== undefined) return undefined;
  if (!file) return { outcome: 'unknown', text: unknownText(tool, output) };
  const now = await hashOfFile(file.path).catch(() => undefined);
  if (now === file.before) return undefined;
  if (now === file.after) {
    return { outcome: 'completed', text: `Done before the agent server ended: ${file.path} has the new content.` };
  }
  const text = `The outcome is unknown: the agent server ended while ${tool} ran, and ${file.path} was changed by others since. Read it before you continue.`;
  return { outcome: 'unknown', text };
}

/** Open calls of an external agent, whose outcome is unknown. */
export const lostCalls = ({ record: { items } }: TurnContext): readonly ResumedCall[] =>
  items.openCalls.map((item) => {
    const output = items.last('commandExecution', ({ callId }) => callId === item.callId)?.output ?? '';
    const known = { outcome: 'unknown', text: unknownText(item.tool, output) } as const;
    return { item, started: undefined, known };
  });

/** Result of a started call whose tool is missing. */
export const unknownResult = (tool: string): KnownResult => ({ outcome: 'unknown', text: unknownText(tool, '') });

const unknownText = (tool: string, output: string): string =>
  `The outcome is unknown: the agent server ended while ${tool} ran, and it was not repeated. Check its effects before you continue.` +
  (output === '' ? '' : ` Output until then: ${output}`);

/**
 * Reports to clients that a turn continues, withdraws the answer that broke off, and chooses the state.
 *
 * @param calls see `resumedCalls` and `lostCalls`
 * @param note clause about the work of an external agent; empty: none
 */
export function announceResumption(turn: TurnContext, calls: readonly ResumedCall[], note = ''): Resumption {
  const { services, place, record, resumed, thread } = turn;
  if (!resumed) throw new Error(`${place.turnId} is not resumed`);
  const { facts: saved, reason } = resumed;
  const { state } = saved;
  const unknown = calls.filter(({ known }) => known?.outcome === 'unknown');
  const callsUnknown = unknown.map(({ item: { callId, tool } }) => ({ callId, tool }));
  const isRepeated = (state === 'inferring' || state === 'concluding') && calls.length === 0;
  const { lastAwayMs: awayMs } = resumed;
  const text = sentences(
    `${reason === 'reboot' ? 'The machine was restarted, and the agent' : 'The agent'} server ended at ${clockOf(resumed.endedAt)} and was back at ${clockOf(resumed.at)}.`,
    [isRepeated && 'the answer is repeated', note !== '' && note, unknown.length > 0 && unknownCalls(unknown)],
  );
  if (isRepeated && record.items.discardAnswer()) {
    record.items.add({ type: 'systemNotice', kind: 'requestRepeated', text: 'The agent server ended in the answer.' });
  }
  record.items.add({ type: 'systemNotice', kind: 'turnResumed', text });
  const { incarnation } = services;
  const facts = { reason, incarnation, awayMs, callsUnknown };
  record.publish({ method: 'system/event', params: { ...place, kind: 'turnResumed', message: text, ...facts } });
  const callsRepeated = calls.filter(({ known, started }) => started && !known).length;
  services.tracer?.turnResumed(place, {
    ...{ reason, incarnation, awayMs, resumes: record.resumes, callsRepeated, callsUnknown: unknown.length },
  });
  return { next: thread.delegate ? resumedDelegationOf(state) : resumedStateOf(state, calls.length > 0) };
}

/** Adds the known results of calls, which do not run again. */
export function addKnownResults({ record }: TurnContext, calls: readonly ResumedCall[]): void {
  for (const { item, known } of calls) {
    const { callId, tool } = item;
    if (known)
      record.items.add<'toolResult'>({ type: 'toolResult', callId, tool, outcome: known.outcome, text: known.text });
  }
}

function unknownCalls(calls: readonly ResumedCall[]): string {
  const isCommand = calls.every(({ item: { tool } }) => tool === 'Exec');
  const subject = isCommand ? 'command' : 'call';
  return calls.length === 1
    ? `one ${subject} has an unknown outcome`
    : `${count(calls.length, subject)} have an unknown outcome`;
}

function sentences(first: string, more: readonly (string | false)[]): string {
  const rest = more.filter((part) => part !== false).join('; ');
  return rest === '' ? first : `${first} ${rest.charAt(0).toUpperCase()}${rest.slice(1)}.`;
}

/** Local time of the day, as 14:03. */
const clockOf = (at: number): string =>
  new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });

/** Tools after which the model knows the content of a file. */
const fileTools: ReadonlySet<string> = new Set(['ReadFile', 'WriteFile', 'EditFile']);
const maxNamedFiles = 10;

/**
 * Names for the model the files of finished calls that changed while no agent server was running.
 *
 * @returns one text, or none
 */
export async function changedFilesNote(
  { services, thread, record, resumed }: TurnContext,
  toolOf: (name: string) => Tool | undefined,
): Promise<readonly string[]> {
  if (!resumed) return [];
  const items = record.items.snapshot();
  const finished = new Set(items.flatMap((item) => (item.type === 'toolResult' ? [item.callId] : [])));
  const paths = new Set<string>();
  for (const item of items) {
    if (item.type !== 'toolCall' || !fileTools.has(item.tool) || !finished.has(item.callId)) continue;
    const tool = toolOf(item.tool);
    const parsed = tool?.parse(parsedJson(item.arguments));
    const path = parsed?.ok ? tool?.placeOf?.(parsed.args) : undefined;
    if (path !== undefined) paths.add(path);
  }
  const changed: string[] = [];
  for (const path of paths) {
    if ((await lastChangeOf(resolve(thread.workspacePath, path))) > resumed.endedAt) changed.push(path);
  }
  if (changed.length === 0) return [];
  const more = changed.length - maxNamedFiles;
  const names = `${changed.slice(0, maxNamedFiles).join(', ')}${more > 0 ? ` and ${count(more, 'other file')}` : ''}`;
  return [
    services.clean(`Files of this turn that changed while the agent server was down: ${names}. Read them again.`),
  ];
}

/** Time of the last change of a file, or of the directory of a missing file, in whole milliseconds; 0: unknown. */
async function lastChangeOf(path: string): Promise<number> {
  const found = await stat(path).catch(() => stat(dirname(path)).catch(() => undefined));
  return Math.floor(found?.ctimeMs ?? 0);
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
