/** `oratorio cron …` and `oratorio task …`: jobs and tasks of a workspace. Each function is one command. */
import type { Automation } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { promptOf } from '../conversation.ts';
import { usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { inputOf } from './cron-options.ts';
import { listLines, runLine, showLines } from './cron-render.ts';
import { type Automations, automationIn, named, withAutomations } from './cron-server.ts';

/** `oratorio cron list` */
export const list = (context: CommandContext): Promise<number> => printList(context, 'cron');
/** `oratorio task list` */
export const listTasks = (context: CommandContext): Promise<number> => printList(context, 'tasks');

async function printList(context: CommandContext, kind: 'cron' | 'tasks'): Promise<number> {
  const { output } = context;
  const state = await withAutomations(context, (automations) => automations.state());
  const found = state[kind];
  if (output.json) {
    output.document(found);
    return exitCodes.ok.code;
  }
  if (!state.isRunning) output.warn('Automations are switched off here (Automations.Enabled): nothing runs by itself.');
  if (found.length > 0) for (const line of listLines(found, Date.now(), output)) output.line(line);
  else if (kind === 'cron')
    output.line('There are no jobs. For one: oratorio cron add --daily 07:30 "What has changed since yesterday?"');
  else output.line('There are no tasks. For one: oratorio task add "Tidy up the imports"');
  return exitCodes.ok.code;
}

/** `oratorio cron add <prompt>` */
export async function add(context: CommandContext): Promise<number> {
  const input = await wanted(context, 'cron add');
  if (!input.schedule) throw usageError('A job needs a schedule: --every, --at, --daily or --cron.', 'cron add');
  return withAutomations(context, async ({ ask }) => added(context, automationIn(await ask('cron/add', input))));
}

/** `oratorio task add <prompt>` */
export async function addTask(context: CommandContext): Promise<number> {
  const input = await wanted(context, 'task add');
  return withAutomations(context, async (automations) => {
    const task = automationIn(await automations.ask('automation/task/create', input));
    return context.options['wait'] === true ? follow(context, automations, task) : added(context, task);
  });
}

async function wanted(context: CommandContext, command: string) {
  const prompt = await promptOf(context);
  if (prompt === undefined) throw usageError(`oratorio ${command} needs a prompt for the agent.`, command);
  return inputOf(context, prompt, command, Date.now());
}

function added({ output }: CommandContext, automation: Automation): number {
  if (output.json) output.document(automation);
  else for (const line of showLines(automation, Date.now(), output.colors)) output.line(line);
  return exitCodes.ok.code;
}

/** `oratorio cron show <id>` */
export const show = (context: CommandContext): Promise<number> =>
  withAutomations(context, async (automations) => added(context, await named(context, 'cron show', automations)));

/** `oratorio cron enable <id>` */
export const enable = (context: CommandContext): Promise<number> => switchTo(context, true, 'cron enable');
/** `oratorio cron disable <id>` */
export const disable = (context: CommandContext): Promise<number> => switchTo(context, false, 'cron disable');

const switchTo = (context: CommandContext, enabled: boolean, command: string): Promise<number> =>
  withAutomations(context, async (automations) => {
    const { id } = await named(context, command, automations);
    const change = { automationId: id, change: { enabled } };
    return added(context, automationIn(await automations.ask('automation/update', change)));
  });

/** `oratorio cron cancel <id>` */
export const cancel = (context: CommandContext): Promise<number> =>
  withAutomations(context, async (automations) => {
    const { id } = await named(context, 'cron cancel', automations);
    return added(context, automationIn(await automations.ask('automation/cancel', { automationId: id })));
  });

/** `oratorio cron remove <id>` */
export const remove = (context: CommandContext): Promise<number> =>
  withAutomations(context, async (automations) => {
    const { id, name } = await named(context, 'cron remove', automations);
    await automations.ask('automation/delete', { automationId: id });
    if (context.output.json) context.output.document({ removed: true, id });
    else context.output.line(`Removed ${name} (${id}) and its history.`);
    return exitCodes.ok.code;
  });

/** `oratorio cron run <id>` */
export const run = (context: CommandContext): Promise<number> =>
  withAutomations(context, async (automations) => {
    const { id } = await named(context, 'cron run', automations);
    const heard = automations.server.notifications({ signal: context.signal });
    const automation = automationIn(await automations.ask('automation/run', { automationId: id }));
    if (context.options['wait'] !== true) {
      await heard.return();
      return added(context, automation);
    }
    return follow(context, automations, automation, heard);
  });

/** Waits until no run of the automation is active, then prints its last run. */
async function follow(
  context: CommandContext,
  automations: Automations,
  automation: Automation,
  heard = automations.server.notifications({ signal: context.signal }),
): Promise<number> {
  const { id } = automation;
  const isOver = ({ state, recentRuns }: Automation) =>
    state !== 'running' && state !== 'queued' && recentRuns.some(({ status }) => status !== 'missed');
  const read = async () => automationIn(await automations.ask('automation/read', { automationId: id }));
  let latest = await read();
  const iterator = heard[Symbol.asyncIterator]();
  while (!isOver(latest)) {
    const { done } = await iterator.next();
    if (done) return exitCodes.interrupted.code;
    latest = await read();
  }
  await iterator.return();
  const [last] = latest.recentRuns;
  if (context.output.json) context.output.document(last);
  else if (last?.result !== undefined && last.status === 'completed') context.output.line(last.result);
  else if (last) context.output.line(runLine(last, context.output.colors));
  return last?.status === 'completed' ? exitCodes.ok.code : exitCodes.failure.code;
}
