import * as v from 'valibot';
import type { Step } from '../stack-plan.ts';

const attributes = { mode: v.number(), uid: v.number(), gid: v.number() };
const services = v.array(v.picklist(['agent', 'backend', 'webhook-gateway']));
const failure = v.object({ code: v.string(), message: v.string() });
const stamp = { change: v.string(), at: v.string() };

/** State of a file before a step. */
export const formerSchema = v.variant('kind', [
  v.object({ kind: v.literal('nothing') }),
  v.object({ kind: v.literal('absent') }),
  v.object({ kind: v.literal('directory'), ...attributes }),
  /** A file whose content is in the backup of the change, under the name of its path. */
  v.object({ kind: v.literal('file'), hash: v.string(), ...attributes }),
  v.object({ kind: v.literal('services'), running: services }),
]);
export type Former = v.InferOutput<typeof formerSchema>;

/** Facts of a step that are needed to revert it without its plan. Never a content. */
export const stepRecordSchema = v.variant('do', [
  v.object({ do: v.literal('makeDirectory'), path: v.string() }),
  v.object({ do: v.literal('writeFile'), path: v.string(), hash: v.string(), isSecret: v.boolean() }),
  v.object({ do: v.literal('removeFile'), path: v.string() }),
  v.object({ do: v.literal('clone'), repository: v.string(), url: v.string(), path: v.string() }),
  v.object({ do: v.literal('giveTo'), path: v.string(), uid: v.number(), gid: v.number() }),
  v.object({ do: v.literal('checkPorts') }),
  v.object({ do: v.literal('pullImages') }),
  v.object({ do: v.literal('checkComposition') }),
  v.object({ do: v.literal('checkGateway') }),
  v.object({ do: v.literal('saveState') }),
  v.object({ do: v.literal('start'), services, recreate: v.boolean() }),
  v.object({ do: v.literal('awaitHealthy') }),
  v.object({ do: v.literal('removeServices'), services }),
]) satisfies v.GenericSchema<unknown, { readonly do: Step['do'] }>;
export type StepRecord = v.InferOutput<typeof stepRecordSchema>;

const commands = v.picklist(['init', 'add-repo', 'webhook enable', 'webhook disable', 'restart', 'upgrade']);

const changeRecordSchema = v.object({
  change: v.string(),
  command: commands,
  begunAt: v.string(),
  /** Time of the last known fact. */
  at: v.string(),
  outcome: v.picklist(['done', 'undone', 'undoFailed', 'abandoned', 'unfinished']),
  /** Failure that ended it early. */
  failure: v.nullable(failure),
  /** Names of secrets that are in use and have not been shown. */
  owed: v.array(v.string()),
});
/** Outcome of a change. `abandoned`: it failed and left no file half-written, and another command followed. */
export type ChangeRecord = v.InferOutput<typeof changeRecordSchema>;

const began = { ...stamp, onFailure: v.picklist(['undo', 'keep']), reveals: v.array(v.string()) };

/** A line of the journal: one fact that is on disk before anything that follows from it is done. Times in ISO 8601. */
export const journalEntrySchema = v.variant('type', [
  /** `owed`: as in a change record, of the change before. */
  v.object({ type: v.literal('begin'), ...began, command: commands, owed: v.array(v.string()) }),
  /** A run of the same command resumes the change of an earlier process. */
  v.object({ type: v.literal('adopt'), ...began }),
  v.object({ type: v.literal('doing'), ...stamp, key: v.string(), step: stepRecordSchema, former: formerSchema }),
  v.object({ type: v.literal('did'), ...stamp, key: v.string(), result: v.picklist(['done', 'kept']) }),
  v.object({ type: v.literal('undoing'), ...stamp, failure }),
  v.object({ type: v.literal('undid'), ...stamp, key: v.string() }),
  /** After everything is undone: the services that ran before run again. */
  v.object({ type: v.literal('restarted'), ...stamp }),
  /** The change failed and is not undone: the same command resumes it. */
  v.object({ type: v.literal('stopped'), ...stamp, failure }),
  v.object({ type: v.literal('end'), ...stamp, outcome: v.picklist(['done', 'undone', 'undoFailed', 'abandoned']) }),
  /** Everything that is stored of an ended change. */
  v.object({ type: v.literal('ended'), record: changeRecordSchema }),
]);
export type JournalEntry = v.InferOutput<typeof journalEntrySchema>;
export type ChangeEntry = Exclude<JournalEntry, { readonly type: 'ended' }>;

/** Entry of the journal for a step. */
export function recordOf(step: Step, hash: (content: string) => string): StepRecord {
  const known: { readonly [D in Step['do']]?: (step: Extract<Step, { readonly do: D }>) => StepRecord } = {
    writeFile: ({ path, content, isSecret }) => ({ do: 'writeFile', path, hash: hash(content), isSecret }),
    clone: ({ repository, url, path }) => ({ do: 'clone', repository, url: withoutPassword(url), path }),
  };
  const make = known[step.do] as ((step: Step) => StepRecord) | undefined;
  return make ? make(step) : v.parse(stepRecordSchema, step);
}

function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  if (parsed.password === '') return url;
  parsed.password = '';
  return parsed.href;
}
