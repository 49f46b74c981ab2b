import * as v from 'valibot';
import { ReviewError } from '../errors.ts';
import type { StoredCommand, StoredItem, StoredRun } from '../store/index.ts';
import { type CommandVerb, commandVerbs, decideCommand, rulesOf } from '../webhook/index.ts';
import { type Asked, react, reply } from './acknowledge.ts';
import { helpText, refusalText, statusText } from './command-texts.ts';
import { enabledRepository, freshItem } from './items.ts';
import { limits } from './limits.ts';
import { readable } from './payload.ts';
import type { JobContext, JobKind, Outcome } from './types.ts';

/** What the intake puts into jobs of this kind (`webhook/decide.ts`). */
const Payload = v.object({ commentId: v.number(), association: v.string(), deliveryId: v.optional(v.string()) });

/** A mention: who gave it is asked for, what it wants is done, and whoever wrote it is told. */
export const command: JobKind = {
  async work(job, context) {
    const { commentId, association, deliveryId } = v.parse(Payload, job.payload);
    const known = await context.store.command(commentId);
    if (!known) return;
    const attempt = { deliveryId, isRepeated: job.attempt > 1 };
    const outcome = await outcomeOf(known, association, context, attempt);
    if (deliveryId !== undefined) await context.outcomes.delivery(deliveryId, outcome);
  },
  async giveUp(job, context, { code }) {
    const payload = readable(Payload, job);
    if (!payload) return;
    const { commentId, deliveryId } = payload;
    await context.store.updateCommand(commentId, { status: 'failed', errorCode: code });
    if (deliveryId !== undefined) await context.outcomes.delivery(deliveryId, { outcome: 'failed', reason: code });
  },
};

async function outcomeOf(
  known: StoredCommand,
  association: string,
  context: JobContext,
  attempt: Pick<Order, 'deliveryId' | 'isRepeated'>,
): Promise<Outcome> {
  const done: Outcome = { outcome: 'processed', reason: null };
  // It was done before, and nobody could be told of it.
  if (known.status === 'dispatched') return done;
  const repository = await enabledRepository(context, known.repositoryKey);
  if (!repository) return refused(context, known, undefined, 'githubCommentCommandRepositoryNotConfigured');
  const asked: Asked = { repository, number: known.number, commentId: known.commentId };
  if (known.status === 'rejected')
    return refused(context, known, asked, known.errorCode ?? 'githubCommentCommandArgumentsInvalid');
  const judged = await decideCommand(
    {
      isBot: false,
      association,
      isRepositoryConfigured: true,
      hasWorkspaceRoute: rulesOf(context.settings()).repositories.get(known.repositoryKey)?.hasWorkspaceRoute === true,
    },
    () => context.source.isCollaborator(repository, known.actor),
  );
  if (judged.kind === 'rejected') return refused(context, known, asked, judged.errorCode);
  await react(context, asked, 'eyes');
  const item = await freshItem(context, repository, known.number);
  if (item?.state !== 'open') return refused(context, known, asked, 'githubCommentCommandTargetInvalid');
  try {
    const run = await verbs[verbOf(known)]({ context, asked, item, command: known, ...attempt });
    await context.store.updateCommand(known.commentId, { status: 'dispatched', runId: run?.runId ?? null });
    return done;
  } catch (error) {
    if (!(error instanceof ReviewError)) throw error;
    return refused(context, known, asked, error.code);
  }
}

/** @param asked undefined: there is nobody to be told */
async function refused(
  context: JobContext,
  { commentId }: StoredCommand,
  asked: Asked | undefined,
  errorCode: string,
): Promise<Outcome> {
  if (asked) await reply(context, asked, refusalText(errorCode, context.settings().GitHub.Handle));
  await context.store.updateCommand(commentId, { status: 'rejected', errorCode });
  return { outcome: 'rejected', reason: errorCode };
}

function verbOf({ verb }: StoredCommand): CommandVerb {
  const known = commandVerbs.find((each) => each === verb);
  if (known === undefined) throw new ReviewError('invalidRequest', `There is no command ${verb}.`);
  return known;
}

interface Order {
  readonly context: JobContext;
  readonly asked: Asked;
  readonly item: StoredItem;
  readonly command: StoredCommand;
  /** An earlier attempt may have dispatched the review. */
  readonly isRepeated: boolean;
  readonly deliveryId: string | undefined;
}
/** @returns the review that it led to */
type Verb = (order: Order) => Promise<StoredRun | undefined>;

const reviewing =
  (scope: 'full' | 'incremental'): Verb =>
  async (order) => {
    const { context, item, command, isRepeated, deliveryId } = order;
    const { focus } = command;
    const before = isRepeated ? await reviewOf(order) : undefined;
    if (before) return before;
    const { run } = await context.runs.dispatch(item, { trigger: 'mention', scope, focus, deliveryId });
    return run;
  };

/** What an attempt has dispatched that ended before it could say so: the review may be over, and is not made twice. */
async function reviewOf({ context, item, command }: Order): Promise<StoredRun | undefined> {
  const { rows } = await context.store.runs({ itemId: item.itemId, limit: limits.runsLookedThrough });
  return rows.find(
    ({ trigger, focus, createdAt }) =>
      trigger === 'mention' && focus === command.focus && createdAt >= command.createdAt,
  );
}

/** What a verb changed is in the database; the thumb says so. */
const quietly =
  (work: (order: Order) => Promise<void>): Verb =>
  async (order) => {
    await work(order);
    await react(order.context, order.asked, '+1');
    return undefined;
  };

const verbs: Readonly<Record<CommandVerb, Verb>> = {
  review: reviewing('incremental'),
  fullReview: reviewing('full'),
  pause: quietly(({ context, item }) => change(context, item, { isPaused: true })),
  resume: quietly(async ({ context, item }) => {
    // Whoever goes on by hand begins to count anew.
    await change(context, item, { isPaused: false, automaticReviews: 0 });
    context.tickSoon();
  }),
  resolve: quietly(async ({ context, item, command: { actor } }) => {
    for (const { findingId } of await context.store.openFindings(item.itemId))
      await context.runs.resolveFinding(findingId, 'dismissed', `Resolved by @${actor}.`);
  }),
  cancel: quietly(async ({ context, item }) => {
    const glance = (await context.store.itemGlances([item.itemId])).get(item.itemId);
    for (const runId of [glance?.waitingRunId, glance?.activeRunId])
      if (runId !== null && runId !== undefined) await context.runs.cancel(runId);
  }),
  async status({ context, asked, item }) {
    const { store } = context;
    const [runs, findings] = await Promise.all([
      store.runs({ itemId: item.itemId, limit: 1 }),
      store.openFindings(item.itemId),
    ]);
    await reply(context, asked, statusText(item, runs.rows[0], findings.length));
    return undefined;
  },
  async help({ context, asked }) {
    await reply(context, asked, helpText(context.settings().GitHub.Handle));
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
