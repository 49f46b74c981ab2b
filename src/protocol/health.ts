/** Health of a workspace on the wire: the report of its agent server to the Hub, and the Hub's view of it. */
import * as v from 'valibot';
import { AgentInUse } from './agents.ts';

const text = (description: string, most = 2_000) => v.pipe(v.string(), v.maxLength(most), v.description(description));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Whether turns come to an answer and tools can be called; `unknown` before the first turn. */
export const healthStates = ['unknown', 'healthy', 'degraded', 'failing'] as const;
export const HealthState = v.picklist(healthStates);
export type HealthState = v.InferOutput<typeof HealthState>;

/** End of the last turn of a workspace. */
export const LastTurn = v.object({
  status: v.picklist(['completed', 'failed', 'cancelled']),
  endedAt: v.pipe(v.string(), v.isoTimestamp(), v.description('When the turn ended.')),
  code: v.nullable(text('Code of the failure, e.g. upstreamUnauthorized.', 100)),
  message: v.nullable(text('The failure in a sentence.')),
});
export type LastTurn = v.InferOutput<typeof LastTurn>;

/** Model that answers the next turn. */
export const ModelInUse = v.object({
  name: text('Name of the model; empty: the usual one of the provider.', 300),
  provider: text('Kind of the provider, e.g. openai or demo.', 100),
  host: v.nullable(text('Host of the endpoint; null for the demo provider.', 300)),
});
export type ModelInUse = v.InferOutput<typeof ModelInUse>;

/** Action that fixes a problem: a button or text on the page, a command in a terminal. */
export const Remedy = v.variant('act', [
  v.object({
    act: v.pipe(
      v.picklist(['editSetting', 'raiseLimit']),
      v.description('raiseLimit: the setting is the number of automatic restarts.'),
    ),
    file: text('File that holds the value.', 4_000),
    line: v.nullable(v.pipe(count, v.description('Line of the value, from 1; null when it is unknown.'))),
    keyPath: text('Path of the setting; empty for the file as a whole.', 1_000),
  }),
  v.object({ act: v.picklist(['login', 'start', 'restart', 'trust', 'openLog']) }),
]);
export type Remedy = v.InferOutput<typeof Remedy>;

/** A problem of a workspace: its reason, its place, and the command that helps. */
export const Problem = v.object({
  code: text('Problem in one word; the list is open.', 100),
  what: text('Problem in a sentence.', 4_000),
  where: v.nullable(text('File and key, host or process that it concerns.', 4_000)),
  next: v.nullable(text('Next step in a terminal.', 4_000)),
  remedy: v.optional(Remedy),
});
export type Problem = v.InferOutput<typeof Problem>;

/** Whether commands run in the sandbox that the settings ask for. */
export const SandboxState = v.object({
  state: v.pipe(
    v.picklist(['on', 'off', 'failed']),
    v.description('off: commands run without it; failed: it cannot be made, and commands are refused.'),
  ),
  reason: text('Program of the sandbox, or why it is missing.'),
});
export type SandboxState = v.InferOutput<typeof SandboxState>;

/** Health of a workspace as its own page shows it. */
export const WorkspaceCondition = v.object({
  health: HealthState,
  /** The most urgent first. */
  problems: v.array(Problem),
  lastTurn: v.nullable(LastTurn),
  failuresInARow: count,
  model: v.nullable(ModelInUse),
  agent: v.optional(v.nullable(AgentInUse), null),
  sandbox: v.optional(v.nullable(SandboxState), null),
});
export type WorkspaceCondition = v.InferOutput<typeof WorkspaceCondition>;

/** Failures that the machine `workspace-health` begins with after a restart. */
export const RememberedHealth = v.object({
  lastTurn: v.nullable(LastTurn),
  failure: v.nullable(v.object({ code: text('', 100), message: text('') })),
  failuresInARow: count,
});
export type RememberedHealth = v.InferOutput<typeof RememberedHealth>;

/** Health of a workspace as its agent server reports it on the feed of its inbox, and with its address. */
export const HealthReport = v.object({
  ...RememberedHealth.entries,
  incarnation: text('Start of the agent server that reports.', 100),
  health: HealthState,
  model: v.nullable(ModelInUse),
  agent: v.pipe(
    v.optional(v.nullable(AgentInUse), null),
    v.description('Agent that does the turns; null: the server is of an earlier version.'),
  ),
  mcpServers: v.object({
    total: count,
    down: v.pipe(
      v.array(
        v.object({
          name: text('Name of the server.', 100),
          error: v.nullable(text('Why it is down.')),
          needsLogin: v.pipe(v.optional(v.boolean()), v.description('Whether it waits for a log-in of the user.')),
        }),
      ),
      v.maxLength(64),
    ),
    toolProblems: v.pipe(
      v.optional(v.array(text('Server, tool and field, in a sentence.')), []),
      v.maxLength(64),
      v.description('Tools of servers that are left out or offered in part.'),
    ),
  }),
  pendingApprovals: count,
  turnsResumed: v.pipe(
    v.optional(count),
    v.description(
      'Running turns that began in an earlier agent server; absent: none, or the server is of an earlier version.',
    ),
  ),
  costUsd: v.pipe(v.nullable(v.number()), v.description('Cost of all kept turns in US dollars; null: unknown.')),
  sandbox: v.pipe(
    v.optional(v.nullable(SandboxState), null),
    v.description('Sandbox of commands; null: not tried yet, or the server is of an earlier version.'),
  ),
});
export type HealthReport = v.InferOutput<typeof HealthReport>;
