import * as v from 'valibot';
import { ReviewError } from '../errors.ts';
import type { StoredCommand, StoredItem, StoredRun } from '../store/index.ts';
import { type CommandVerb, commandVerbs, decideCommand, rulesOf } from '../webhook/index.ts';
import { type CommentTarget, react, reply } from './acknowledge.ts';
import { helpText, refusalText, statusText } from './command-texts.ts';
import { enabledRepository, freshItem } from './items.ts';
import { limits } from './limits.ts';
import { parsedPayload } from './payload.ts';
import type { JobContext, JobKind, Outcome } from './types.ts';

/** Payload from the intake (`webhook/decide.ts`). */
const Payload = v.object({
  commentId: v.number(),
  association: v.string(),
  place: v.optional(v.picklist(['conversation', 'thread', 'review']), 'conversation'),
  threadId: v.nullish(v.number(), null),
  deliveryId: v.optional(v.string()),
});
type Payload = v.InferOutput<typeof Payload>;

/** A command that cannot be followed where it was written. */
class CommandRefusal extends Error {
  override readonly name = 'CommandRefusal';
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/** Executes the command of a mention: checks the permission of its author, executes it and replies. */
export const command: JobKind = {
  async work(job, context) {
    const payload = v.parse(Payload, job.payload);
    const { commentId, deliveryId } = payload;
    const known = await context.store.command(commentId);
    if (!known) return;
    const attempt = { deliveryId, isRepeated: job.lease.token > 1 };
    const outcome = await outcomeOf(known, payload, context, attempt);
    if (deliveryId !== undefined) await context.outcomes.delivery(deliveryId, outcome);
  },
  async giveUp(job, context, { code }) {
    const payload = parsedPayload(Payload, job);
    if (!payload) return;
    const { commentId, deliveryId } = payload;
    await context.store.updateCommand(commentId, { status: 'failed', errorCode: code });
    if (deliveryId !== undefined) await context.outcomes.delivery(deliveryId, { outcome: 'failed', reason: code });
  },
};

async function outcomeOf(
  known: StoredCommand,
  { association, place, threadId }: Payload,
  context: JobContext,
  attempt: Pick<CommandContext, 'deliveryId' | 'isRepeated'>,
): Promise<Outcome> {
  const done: Outcome = { outcome: 'processed', reason: null };
  // An earlier attempt executed the command, but did not complete the job.
  if (known.status === 'dispatched') return done;
  const repository = await enabledRepository(context, known.repositoryKey);
  if (!repository) return refused(context, known, undefined, 'githubCommentCommandRepositoryNotConfigured');
  const { number, commentId } = known;
  const target: CommentTarget = { repository, number, commentId, place, threadId };
  if (known.status === 'rejected')
    return refused(context, known, target, known.errorCode ?? 'githubCommentCommandArgumentsInvalid');
  const judged = await decideCommand(
    {
      isBot: false,
      association,
      isRepositoryConfigured: true,
      hasWorkspaceRoute: rulesOf(context.settings()).repositories.get(known.repositoryKey)?.hasWorkspaceRoute === true,
    },
    () => context.source.isCollaborator(repository, known.actor),
  );
  if (judged.kind === 'rejected') return refused(context, known, target, judged.errorCode);
  await react(context, target, 'eyes');
  const item = await freshItem(context, repository, known.number);
  if (item?.state !== 'open') return refused(context, known, target, 'githubCommentCommandTargetInvalid');
  try {
    const run = await verbs[verbOf(known)]({ context, target, item, command: known, ...attempt });
    await context.store.updateCommand(known.commentId, { status: 'dispatched', runId: run?.runId ?? null });
    return done;
  } catch (error) {
    if (!(error instanceof ReviewError || error instanceof CommandRefusal)) throw error;
    return refused(context, known, target, error.code);
  }
}

/** Rejects a command. @param target comment to reply to; undefined for a repository that is not configured */
async function refused(
  context: JobContext,
  { commentId }: StoredCommand,
  target: CommentTarget | undefined,
  errorCode: string,
): Promise<Outcome> {
  if (target) await reply(context, target, refusalText(errorCode, context.settings().GitHub.Handle), errorCode);
  await context.store.updateCommand(commentId, { status: 'rejected', errorCode });
  return { outcome: 'rejected', reason: errorCode };
}

function verbOf({ verb }: StoredCommand): CommandVerb {
  const known = commandVerbs.find((each) => each === verb);
  if (known === undefined) throw new ReviewError('invalidRequest', `Unknown command: ${verb}.`);
  return known;
}

interface CommandContext {
  readonly context: JobContext;
  readonly target: CommentTarget;
  readonly item: StoredItem;
  readonly command: StoredCommand;
  /** An earlier attempt may have dispatched the review. */
  readonly isRepeated: boolean;
  readonly deliveryId: string | undefined;
}
/** Executes a command. @returns the review run that it started */
type Verb = (given: CommandContext) => Promise<StoredRun | undefined>;

const reviewing =
  (scope: 'full' | 'incremental'): Verb =>
  async (given) => {
    const { context, item, command, isRepeated, deliveryId } = given;
    const { focus } = command;
    const before = isRepeated ? await reviewOf(given) : undefined;
    if (before) return before;
    const { run } = await context.runs.dispatch(item, { trigger: 'mention', scope, focus, deliveryId });
    return run;
  };

/** Finds the run that an interrupted attempt has dispatched, so that the command does not start a second one. */
async function reviewOf({ context, item, command }: CommandContext): Promise<StoredRun | undefined> {
  const { rows } = await context.store.runs({ itemId: item.itemId, limit: limits.searchedRuns });
  return rows.find(
    ({ trigger, focus, createdAt }) =>
      trigger === 'mention' && focus === command.focus && createdAt >= command.createdAt,
  );
}

/** Executes a command that only changes stored state, and confirms it with a reaction. */
const confirmed =
  (work: (given: CommandContext) => Promise<void>): Verb =>
  async (given) => {
    await work(given);
    await react(given.context, given.target, '+1');
    return undefined;
  };

const verbs: Readonly<Record<CommandVerb, Verb>> = {
  review: reviewing('incremental'),
  fullReview: reviewing('full'),
  pause: confirmed(({ context, item }) => change(context, item, { isPaused: true })),
  resume: confirmed(async ({ context, item }) => {
    // Resuming restarts the count for `PauseAfter`.
    await change(context, item, { isPaused: false, automaticReviews: 0 });
    context.tickSoon();
  }),
  resolve: confirmed(async ({ context, item, target: { threadId }, command: { actor } }) => {
    const open = await context.store.openFindings(item.itemId);
    // In a thread, the command means the finding of this thread.
    const meant = threadId === null ? open : open.filter(({ commentId }) => commentId === threadId);
    if (threadId !== null && meant.length === 0) throw new CommandRefusal('githubCommentCommandThreadUnknown');
    for (const { findingId } of meant)
      await context.runs.resolveFinding(findingId, 'dismissed', `Resolved by @${actor}.`);
  }),
  cancel: confirmed(async ({ context, item }) => {
    const activity = (await context.store.itemActivity([item.itemId])).get(item.itemId);
    for (const runId of [activity?.waitingRunId, activity?.activeRunId])
      if (runId !== null && runId !== undefined) await context.runs.cancel(runId);
  }),
  async status({ context, target, item }) {
    const { store } = context;
    const [runs, findings] = await Promise.all([
      store.runs({ itemId: item.itemId, limit: 1 }),
      store.openFindings(item.itemId),
    ]);
    await reply(context, target, statusText(item, runs.rows[0], findings.length));
    return undefined;
  },
  async help({ context, target }) {
    await reply(context, target, helpText(context.settings().GitHub.Handle));
    return undefined;
  },
};

async function change(
  { store }: JobContext,
  { itemId, repositoryKey, number }: StoredItem,
  what: Partial<Pick<StoredItem, 'isPaused' | 'automaticReviews'>>,
): Promise<void> {
  await store.updateItem(itemId, what);
  await store.publish('item.changed', { itemId, repositoryKey, number });
}
