/** Shared by the commands for jobs and tasks: the connection to the agent server, the search by id or name, requests. */
import * as v from 'valibot';
import { AppServerClient } from '../../client/index.ts';
import { Automation, AutomationsState, type RpcMethod, type RpcParams } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError, usageError } from '../errors.ts';
import { clientInfo, ensureWorkspace } from '../hub.ts';
import { workspacePath } from '../workspace.ts';

/** The automations of one workspace. */
export interface Automations {
  readonly server: AppServerClient;
  ask<M extends RpcMethod>(method: M, params: RpcParams<M>): Promise<unknown>;
  state(): Promise<AutomationsState>;
}

/** Runs `work` with a connection to the agent server of the workspace, which is started when it does not run. */
export async function withAutomations<T>(
  context: CommandContext,
  work: (automations: Automations) => Promise<T>,
): Promise<T> {
  const { options, signal } = context;
  const record = await ensureWorkspace(context, workspacePath(context, options['workspace']));
  const url = record.endpoints['appServerWebSocket'];
  if (url === undefined) {
    const message = `The agent server of ${record.canonicalWorkspacePath} offers no WebSocket.`;
    throw new CliError('startFailed', message, 'See: oratorio inspect .');
  }
  const server = await AppServerClient.connect(url, { clientInfo, signal });
  const ask: Automations['ask'] = (method, params) => server.request(method, params, { signal });
  const state = async () => v.parse(AutomationsState, await ask('automation/state', {}));
  try {
    return await work({ server, ask, state });
  } finally {
    server.close();
  }
}

const Answered = v.union([
  v.pipe(
    v.object({ automation: Automation }),
    v.transform(({ automation }) => automation),
  ),
  v.pipe(
    v.object({ job: Automation }),
    v.transform(({ job }) => job),
  ),
  v.pipe(
    v.object({ task: Automation }),
    v.transform(({ task }) => task),
  ),
]);

/** The automation in an answer: the whole answer, or its field `job` or `task`. */
export const automationIn = (answer: unknown): Automation => v.parse(Answered, answer);

/**
 * The job or task that the argument names: by its id, or by its name when only one has that.
 *
 * @throws CliError usage, failure
 */
export async function named({ argument }: CommandContext, command: string, automations: Automations) {
  if (argument === undefined)
    throw usageError(`oratorio ${command} needs the id or the name of a job or task.`, command);
  const { cron, tasks } = await automations.state();
  const all = [...cron, ...tasks];
  const found = all.filter(({ id, name }) => id === argument || name === argument);
  const exact = found.find(({ id }) => id === argument);
  const [only, ...others] = exact ? [exact] : found;
  if (!only) {
    throw new CliError(
      'failure',
      `There is no job or task ${argument}.`,
      'See: oratorio cron list',
      'automationNotFound',
    );
  }
  if (others.length > 0) {
    const ids = found.map(({ id }) => id).join(', ');
    throw new CliError('failure', `${found.length} are called ${argument}.`, `Name one by its id: ${ids}`, 'ambiguous');
  }
  return only;
}
