/** Commands of jobs, which run on a schedule, and of tasks, which run once. */
import type { ArgumentSpec, CommandSpec, OptionSpec } from './command.ts';
import { inWorkspace, json, noStart, yes } from './shared-options.ts';

const automation: ArgumentSpec = { name: 'id', completes: 'nothing' };
const wait: OptionSpec = {
  name: 'wait',
  describe: 'Wait for the answer and print it',
};
/** Options of `cron add` and `task add`. */
const automationOptions: readonly OptionSpec[] = [
  { name: 'every', value: 'duration', describe: 'Repeat at this interval: 15m, 2h, 1d; at least 1m' },
  { name: 'at', value: 'moment', describe: 'Run once at 2026-12-24T18:00, or from now in +30m' },
  { name: 'daily', value: 'time', describe: 'Run every day at this time, e.g. 07:30' },
  { name: 'cron', value: 'expression', describe: 'Run at minute, hour, day of month, month, weekday' },
  {
    name: 'tz',
    value: 'zone',
    describe: 'Use this time zone for --daily and --cron, e.g. Europe/Berlin',
  },
  { name: 'name', value: 'name', describe: 'Set the name; default: the beginning of the prompt' },
  {
    name: 'thread',
    value: 'id',
    describe: 'Run in this conversation, or own; default: a new one',
  },
  { name: 'model', value: 'model', describe: 'Use this model instead of the configured one' },
  { name: 'once', describe: 'Remove it once it has completed' },
  { name: 'disabled', describe: 'Create it switched off' },
  { name: 'ask', describe: 'Wait for approval instead of declining' },
  { ...yes, describe: 'Approve everything it asks for, shell commands included' },
];

export const automationCommands: readonly CommandSpec[] = [
  {
    name: 'cron list',
    describe: ['List the jobs of a workspace by their next run.'],
    options: [inWorkspace, noStart, json],
    examples: ['cron list', 'cron list --workspace ~/projects/site --json'],
    load: async () => ({ run: (await import('./commands/cron.ts')).list }),
  },
  {
    name: 'cron add',
    describe: [
      'Send a prompt to the agent on a schedule.',
      'Jobs run while the agent server runs. After a pause a job that was due runs once. The prompt may be piped.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [inWorkspace, ...automationOptions, noStart, json],
    examples: [
      'cron add --daily 07:30 "What has changed since yesterday?"',
      'cron add --every 15m --thread own "Is the build green?"',
      'cron add --cron "0 9 * * MON-FRI" --tz Europe/Berlin --name standup "Write the stand-up notes"',
      'cron add --at +30m --once "Remind me of the deployment"',
    ],
    load: async () => ({ run: (await import('./commands/cron.ts')).add }),
  },
  {
    name: 'cron show',
    describe: ['Show a job or task with all its runs.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron show standup', 'cron show job_1f0c5e2a9b3d --json'],
    load: async () => ({ run: (await import('./commands/cron.ts')).show }),
  },
  {
    name: 'cron run',
    describe: ['Run a job or task now, outside its schedule.'],
    argument: automation,
    options: [inWorkspace, wait, noStart, json],
    examples: ['cron run standup', 'cron run standup --wait'],
    load: async () => ({ run: (await import('./commands/cron.ts')).run }),
  },
  {
    name: 'cron cancel',
    describe: [
      'Cancel the current run of a job or task.',
      'A run that waits for a retry is current. The schedule is not changed.',
    ],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron cancel standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).cancel }),
  },
  {
    name: 'cron enable',
    describe: ['Switch a job or task on.', 'Runs that were missed while it was off are not repeated.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron enable standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).enable }),
  },
  {
    name: 'cron disable',
    describe: ['Switch a job or task off.', 'A run that has started continues.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron disable standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).disable }),
  },
  {
    name: 'cron remove',
    describe: ['Remove a job or task and its history.', 'A run that has started is ended.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron remove standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).remove }),
  },
  {
    name: 'task list',
    describe: ['List the local tasks of a workspace.', 'Tasks share the commands of `cron` except `list` and `add`.'],
    options: [inWorkspace, noStart, json],
    examples: ['task list'],
    load: async () => ({ run: (await import('./commands/cron.ts')).listTasks }),
  },
  {
    name: 'task add',
    describe: [
      'Give the agent of a workspace a task.',
      'Without a schedule it runs once, as soon as a slot is free. The prompt may be piped.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [inWorkspace, ...automationOptions, wait, noStart, json],
    examples: ['task add "Tidy up the imports"', 'task add --at 2026-12-24T18:00 "Write the release notes"'],
    load: async () => ({ run: (await import('./commands/cron.ts')).addTask }),
  },
];
