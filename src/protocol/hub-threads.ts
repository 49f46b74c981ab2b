/** The conversations of all workspaces, as the Hub lists them. */
import * as v from 'valibot';
import { AppServerState } from './hub.ts';
import { RaceAttempt, Thread, turnStatuses } from './threads.ts';

const text = (description: string) => v.pipe(v.string(), v.description(description));
const nullable = (description: string) => v.pipe(v.nullable(v.string()), v.description(description));

/** One conversation of a workspace. */
export const HubThread = v.object({
  workspaceId: text('Id of its workspace: see `workspaces`.'),
  threadId: text('Id of the conversation.'),
  name: nullable('Its name, or the first words of its first request; null without both.'),
  status: v.pipe(Thread.entries.status, v.description('An archived conversation cannot be written to.')),
  activity: v.pipe(
    v.picklist(['idle', 'running', 'waiting']),
    v.description('running: a turn runs. waiting: it waits for an approval. idle, too, while no agent server serves.'),
  ),
  channel: nullable('Program that began it; null when it did not say.'),
  createdAt: text('When it began, as ISO 8601.'),
  lastActiveAt: text('When it was last active, as ISO 8601.'),
  lastTurn: v.pipe(
    v.nullable(v.object({ status: v.picklist(turnStatuses), at: v.string() })),
    v.description('How its last turn stands, and when that ended or began; null before one.'),
  ),
  agent: nullable('Agent of its turns; null: that of its workspace.'),
  work: v.pipe(
    v.nullable(
      v.object({
        totalMs: v.pipe(v.number(), v.description('Time of its turns, in milliseconds.')),
        toolMs: v.pipe(v.number(), v.description('Time of its tool calls.')),
        waitMs: v.pipe(v.number(), v.description('Time in which it waited for a person.')),
        pauseMs: v.pipe(
          v.optional(v.number()),
          v.description('Time between failed requests to a model and their repetitions.'),
        ),
        costUsd: v.pipe(v.number(), v.description('Cost of its turns, in US dollars.')),
        unpricedCount: v.pipe(v.number(), v.description('Requests whose price is unknown.')),
        totalTokens: v.pipe(v.number(), v.description('Reported tokens.')),
      }),
    ),
    v.description('Sums of its stored traces; null without a trace.'),
  ),
  fork: v.pipe(
    v.nullable(
      v.object({
        forkedFromThreadId: text('Conversation that it was copied from.'),
        directory: text('Where its files are, beside the workspace.'),
        race: v.nullable(v.omit(RaceAttempt, ['check'])),
      }),
    ),
    v.description('Set on a fork with files of its own; `race` is that of `thread/config/update`.'),
  ),
  actionUrl: text('Path of the conversation on the Hub.'),
});
export type HubThread = v.InferOutput<typeof HubThread>;

/** A workspace of the list. */
export const ThreadWorkspace = v.object({
  workspaceId: text('Id of the workspace.'),
  workspacePath: text('Its canonical path.'),
  displayName: text('Last segment of that path.'),
  state: v.pipe(AppServerState, v.description('State of its agent server: threads change only while it serves.')),
  stateWord: text('That state in words, e.g. ready or gave up.'),
  problem: nullable('Why its conversations are missing here, or older than they could be; null: they are up to date.'),
});
export type ThreadWorkspace = v.InferOutput<typeof ThreadWorkspace>;

/** Answer of `GET /v1/threads`. */
export const HubThreadList = v.object({
  threads: v.pipe(v.array(HubThread), v.description('Conversations, the most recently active first.')),
  hasMore: v.pipe(v.boolean(), v.description('Whether older conversations exist: search, or raise the limit.')),
  workspaces: v.pipe(
    v.array(ThreadWorkspace),
    v.description('Workspaces of these conversations, and those whose conversations could not be read.'),
  ),
});
export type HubThreadList = v.InferOutput<typeof HubThreadList>;

/** Body of `POST /v1/threads/{workspaceId}/{threadId}`: what to change. */
export const ThreadChange = v.strictObject({
  displayName: v.optional(v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(200), v.description('Its new name.'))),
  isArchived: v.optional(v.pipe(v.boolean(), v.description('Whether it is put away.'))),
});
export type ThreadChange = v.InferInput<typeof ThreadChange>;

/** Answer to that. */
export const ThreadChanged = v.object({ workspaceId: v.string(), threadId: v.string() });
