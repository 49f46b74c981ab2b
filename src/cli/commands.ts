/** The command table: help, parsing and shell completion are made from it. In the order of the help. */
import { machineNames } from '../../machines/index.ts';
import { reasoningEfforts } from '../protocol/index.ts';
import type { ArgumentSpec, CommandSpec, OptionSpec } from './command.ts';
import { serverCommands } from './commands-server.ts';
import { knownProviderNames } from './login/known-providers.ts';

const json: OptionSpec = { name: 'json', describe: 'Print JSON; errors as {"error":{…}}' };
const noStart: OptionSpec = { name: 'no-start', describe: 'Fail with exit code 3 instead of starting a Hub' };
const yes: OptionSpec = {
  name: 'yes',
  alias: 'y',
  describe: 'Approve everything the agent asks for, shell commands included',
};
const thread: OptionSpec = {
  name: 'thread',
  value: 'id',
  describe: 'Continue this conversation; default: start a new one',
};
const workspace: ArgumentSpec = { name: 'workspace', completes: 'directories' };
const inWorkspace: OptionSpec = {
  name: 'workspace',
  value: 'dir',
  describe: 'Use this workspace directory; default: the current one',
};
const state: OptionSpec = {
  name: 'state',
  value: 'dir',
  describe: 'Use this state directory; default: $ORATORIO_STATE_ROOT, then <home>/backend',
};
/** Options that select a review backend and its token. */
const toBackend: readonly OptionSpec[] = [
  { name: 'url', value: 'url', describe: 'Use the backend at this address; default: http://127.0.0.1:5087' },
  state,
];
/** Options of `chat` and `exec` that choose the model. */
const modelOptions: readonly OptionSpec[] = [
  { name: 'model', value: 'model', describe: 'Use this model, from now on in this conversation' },
  {
    name: 'effort',
    value: 'effort',
    choices: reasoningEfforts,
    describe: 'Set the time for reasoning: none to xhigh',
  },
];
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

export const commands: readonly CommandSpec[] = [
  {
    name: 'up',
    describe: [
      'Start everything for a workspace and show what happens.',
      'Finds or starts the Hub, starts the agent server of the workspace unless it runs, prints its record and addresses, then follows its events.',
      'Ctrl-C leaves Hub and agent server running.',
    ],
    argument: workspace,
    options: [
      { name: 'init', describe: 'Initialise the directory if it is not a workspace yet' },
      { name: 'no-follow', describe: 'Return once the agent server runs' },
      noStart,
      json,
    ],
    examples: ['up', 'up ~/projects/site --init', 'up --no-follow --json'],
    load: () => import('./commands/up.ts'),
  },
  {
    name: 'init',
    describe: ['Make a directory a workspace.', 'Existing files are not changed.'],
    argument: { name: 'dir', completes: 'directories' },
    options: [json],
    examples: ['init', 'init ~/projects/site'],
    load: () => import('./commands/init.ts'),
  },
  {
    name: 'trust',
    describe: [
      'Let a workspace start programs and send data.',
      'Prints every sensitive setting in the config.json of the workspace and asks for your agreement. Without it these settings are ignored. Changed settings need it again.',
      'Your own protections (sandbox, blocked paths, approval policy, listen addresses, keys) apply to trusted workspaces, too.',
    ],
    argument: workspace,
    options: [
      { name: 'yes', alias: 'y', describe: 'Agree without a prompt' },
      { name: 'revoke', describe: 'Restrict the workspace again' },
      { name: 'list', describe: 'List the workspaces you trust' },
      json,
    ],
    examples: ['trust', 'trust ~/projects/site --yes', 'trust ~/projects/site --revoke', 'trust --list --json'],
    load: () => import('./commands/trust.ts'),
  },
  {
    name: 'login',
    describe: [
      'Connect a model provider.',
      'Asks for provider, key and model, sends one request, and writes your config.json (mode 0600). A key is typed hidden, or comes from a file, the environment or a command.',
      `Providers: ${knownProviderNames.join(', ')}.`,
    ],
    argument: { name: 'provider', choices: knownProviderNames, completes: 'choices' },
    options: [
      { name: 'api-key-file', value: 'file', describe: 'Copy the key from this file' },
      { name: 'api-key-env', value: 'name', describe: 'Read the key from this environment variable at each start' },
      { name: 'api-key-command', value: 'line', describe: 'Run this program at each start; it prints the key' },
      { name: 'end-point', value: 'url', describe: 'Use this base URL instead of the usual one' },
      { name: 'model', value: 'model', describe: 'Use this model' },
      { name: 'no-test', describe: 'Send no request' },
      json,
    ],
    examples: [
      'login',
      'login anthropic',
      'login openai --api-key-env OPENAI_API_KEY --model gpt-6-sol',
      'login other --end-point http://127.0.0.1:9000/v1 --api-key-file key.txt --model my-model',
    ],
    load: () => import('./commands/login.ts'),
  },
  {
    name: 'model',
    describe: [
      'Show which model is in force, and why.',
      'With provider, key source, window, price and budget; keys are never printed.',
    ],
    options: [inWorkspace, json],
    examples: ['model', 'model --workspace ~/projects/site --json'],
    load: async () => ({ run: (await import('./commands/model.ts')).show }),
  },
  {
    name: 'model list',
    describe: [
      'List the models of your providers.',
      'With --refresh, windows and prices are first read from https://models.dev into models.json of your home.',
    ],
    options: [
      inWorkspace,
      { name: 'refresh', describe: 'Read windows and prices anew' },
      { name: 'from', value: 'url', describe: 'Read them from this address' },
      json,
    ],
    examples: ['model list', 'model list --refresh'],
    load: async () => ({ run: (await import('./commands/model.ts')).list }),
  },
  {
    name: 'model set',
    describe: ['Change the model in your config.json.', 'NAME/MODEL is a model of one of your Providers.'],
    argument: { name: 'model', completes: 'nothing' },
    options: [
      {
        name: 'effort',
        value: 'effort',
        choices: reasoningEfforts,
        describe: 'Set the time for reasoning: none to xhigh',
      },
      json,
    ],
    examples: ['model set gpt-6-sol', 'model set claude-sonnet-5-5 --effort high'],
    load: async () => ({ run: (await import('./commands/model.ts')).set }),
  },
  {
    name: 'model test',
    describe: ['Send one request to the model in force.', 'A failure says what to do about it.'],
    options: [inWorkspace, json],
    examples: ['model test'],
    load: async () => ({ run: (await import('./commands/model.ts')).test }),
  },
  {
    name: 'chat',
    describe: [
      'Talk to the agent of a workspace.',
      'With a prompt or piped input: streams one answer. Without: starts a conversation; Ctrl-C interrupts an answer, a second Ctrl-C ends it.',
      'Write -- before a prompt that begins with a dash.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [inWorkspace, thread, ...modelOptions, yes, noStart],
    examples: [
      'chat "hello"',
      'chat',
      'chat --yes "run: npm test"',
      'chat --workspace ~/projects/site "What is here?"',
    ],
    load: () => import('./commands/chat.ts'),
  },
  {
    name: 'exec',
    describe: [
      'Ask once and print the final answer only.',
      'The prompt may be piped. Tool calls that need approval are declined, or approved with --yes.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [inWorkspace, thread, ...modelOptions, yes, noStart, json],
    examples: ['exec "Summarise README.md"', 'exec --json < question.txt'],
    load: () => import('./commands/exec.ts'),
  },
  {
    name: 'list',
    describe: ['List all workspaces the Hub knows.'],
    options: [noStart, json],
    examples: ['list', 'list --json'],
    load: () => import('./commands/list.ts'),
  },
  {
    name: 'inspect',
    describe: [
      'Show one workspace, or open the live statechart page.',
      'With a workspace: prints its record; with --open, opens the statecharts in its dashboard. Without: opens the page of the Hub. The access token is printed on a terminal or with --print-url only.',
    ],
    argument: workspace,
    options: [
      { name: 'open', describe: 'Open the page in a browser' },
      { name: 'print-url', describe: 'Print the address with its access token, open nothing' },
      noStart,
      json,
    ],
    examples: ['inspect', 'inspect .', 'inspect . --open', 'inspect ~/projects/site --json'],
    load: () => import('./commands/inspect.ts'),
  },
  {
    name: 'ensure',
    describe: ['Start the agent server of a workspace unless it runs.', 'Prints its record when it is ready.'],
    argument: workspace,
    options: [{ name: 'inspect-only', describe: 'Print the record without starting anything' }, noStart, json],
    examples: ['ensure', 'ensure ~/projects/site --json'],
    load: () => import('./commands/ensure.ts'),
  },
  {
    name: 'restart',
    describe: ['Restart the agent server of a workspace.'],
    argument: workspace,
    options: [noStart, json],
    examples: ['restart', 'restart ~/projects/site'],
    load: () => import('./commands/restart.ts'),
  },
  {
    name: 'stop',
    describe: ['Stop the agent server of a workspace.', 'Returns when all its processes have ended.'],
    argument: workspace,
    options: [noStart, json],
    examples: ['stop', 'stop ~/projects/site'],
    load: () => import('./commands/stop.ts'),
  },
  {
    name: 'events',
    describe: ['Follow the events of the Hub.', 'Reconnects after a broken connection and replays the missed events.'],
    options: [
      { name: 'since', value: 'id', describe: 'Begin after this event id, as --json prints it' },
      { name: 'workspace', value: 'dir', describe: 'Print only events of this workspace' },
      noStart,
      json,
    ],
    examples: ['events', 'events --json --since 5f3a91c2-17', 'events --workspace .'],
    load: () => import('./commands/events.ts'),
  },
  {
    name: 'logs',
    describe: [
      'Print the log of the agent server of a workspace.',
      'The log is its standard error. Tokens are removed.',
    ],
    argument: workspace,
    options: [
      { name: 'follow', alias: 'f', describe: 'Follow the log until Ctrl-C' },
      { name: 'stdout', describe: 'Print standard output instead of standard error' },
      noStart,
    ],
    examples: ['logs', 'logs ~/projects/site --follow'],
    load: () => import('./commands/logs.ts'),
  },
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
  {
    name: 'machines',
    describe: ['Print the statecharts of the product.', 'Without a name: lists them.'],
    argument: {
      name: 'name',
      choices: machineNames,
      completes: 'choices',
    },
    options: [
      {
        name: 'format',
        value: 'format',
        choices: ['mermaid', 'json', 'svg'],
        describe: 'Print mermaid (default), json or svg',
      },
      json,
    ],
    examples: ['machines', 'machines agent-server', 'machines hub --format svg > hub.svg'],
    load: () => import('./commands/machines.ts'),
  },
  {
    name: 'hub',
    describe: ['Run the Hub in the foreground.', 'Exits with 0 when another Hub serves this user.'],
    options: [],
    examples: ['hub'],
    servesForeground: true,
    load: () => import('./commands/hub.ts'),
  },
  {
    name: 'hub status',
    describe: ['Show the running Hub.', 'Never starts a Hub: exit code 3 when no Hub is running.'],
    options: [json],
    examples: ['hub status', 'hub status --json'],
    load: () => import('./commands/hub-status.ts'),
  },
  {
    name: 'hub stop',
    describe: ['Stop the Hub and all agent servers it manages.'],
    options: [{ name: 'detach', describe: 'Leave the agent servers running for the next Hub' }, json],
    examples: ['hub stop', 'hub stop --detach'],
    load: () => import('./commands/hub-stop.ts'),
  },
  {
    name: 'app-server',
    describe: [
      'Run an agent server in the foreground.',
      'The Hub does this for you. It finds a server that you run yourself, and uses it unchanged.',
    ],
    options: [
      { name: 'workspace', value: 'dir', describe: 'Use this workspace directory; default: the current one' },
      { name: 'port', value: 'port', describe: 'Serve the WebSocket on this port; default: a free one' },
      { name: 'stdio', describe: 'Speak JSON-RPC on standard input and output, too' },
      { name: 'print-schema', describe: 'Print the protocol as an OpenRPC document, then exit' },
    ],
    examples: ['app-server', 'app-server --workspace ~/projects/site', 'app-server --print-schema > openrpc.json'],
    servesForeground: true,
    load: () => import('./commands/app-server.ts'),
  },
  {
    name: 'api',
    describe: [
      'Serve a workspace as an OpenAI-compatible chat API.',
      'Listens on Api.Host and Api.Port of the configuration (127.0.0.1:8080), whatever Api.Enabled says.',
    ],
    options: [{ name: 'workspace', value: 'dir', describe: 'Use this workspace directory; default: the current one' }],
    examples: ['api', 'api --workspace ~/projects/site'],
    servesForeground: true,
    load: () => import('./commands/api.ts'),
  },
  {
    name: 'gateway',
    describe: [
      'Serve the enabled HTTP services of a workspace.',
      'The chat API when Api.Enabled is set, AG-UI when AgUi.Enabled is set, the dashboard unless DashBoard.Enabled is false. Services that are configured for the same address share its port.',
    ],
    options: [{ name: 'workspace', value: 'dir', describe: 'Use this workspace directory; default: the current one' }],
    examples: ['gateway', 'gateway --workspace ~/projects/site'],
    servesForeground: true,
    load: () => import('./commands/gateway.ts'),
  },
  {
    name: 'dashboard',
    describe: [
      'Show the recorded sessions of a workspace.',
      'A read-only viewer that needs no agent server and works beside one. A running agent server has a dashboard of its own: oratorio inspect <workspace> --open.',
      'The access token is printed on a terminal only, or with --print-url.',
    ],
    options: [
      { name: 'workspace', value: 'dir', describe: 'Use this workspace directory; default: the current one' },
      { name: 'port', value: 'port', describe: 'Listen on this port only; default: DashBoard.Port, then any' },
      { name: 'open', describe: 'Open the page in a browser' },
      { name: 'print-url', describe: 'Print the address with its access token' },
      { name: 'new-token', describe: 'Make new access tokens for all dashboards, then exit' },
    ],
    examples: ['dashboard', 'dashboard --workspace ~/projects/site --open', 'dashboard --new-token'],
    load: () => import('./commands/dashboard.ts'),
  },
  {
    name: 'backend',
    describe: [
      'Run the review backend in the foreground.',
      'Receives webhooks of GitHub, reviews pull requests with the agent servers of their workspaces, and publishes what you allow. Settings are in oratorio.config.json.',
      'The API needs the token in service.token of the state directory. The address of the page with this token is printed on a terminal or with --print-url only.',
    ],
    options: [
      {
        name: 'config',
        value: 'file',
        describe: 'Read these settings; default: $ORATORIO_CONFIG_PATH, then <state>/oratorio.config.json',
      },
      state,
      { name: 'port', value: 'port', describe: 'Listen on this port; default: Server.Port (5087); 0: any' },
      { name: 'host', value: 'host', describe: 'Listen on this address; default: Server.Host (127.0.0.1)' },
      {
        name: 'role',
        value: 'role',
        choices: ['all', 'web', 'worker'],
        describe: 'Run only webhook and API (web) or reviews (worker)',
      },
      { name: 'open', describe: 'Open the page in a browser' },
      { name: 'print-url', describe: 'Print the address of the page with its token' },
      json,
    ],
    examples: [
      'backend',
      'backend --config ./oratorio.config.json --state ./state',
      'backend --role worker --port 0 --json',
    ],
    servesForeground: true,
    load: () => import('./commands/backend.ts'),
  },
  {
    name: 'backend status',
    describe: ['Show the state of a review backend.'],
    options: [...toBackend, json],
    examples: ['backend status', 'backend status --url https://reviews.your-company.com --json'],
    load: () => import('./commands/backend-status.ts'),
  },
  {
    name: 'review',
    describe: [
      'Request a review of a pull request from the backend.',
      'Reviews the changes since the last review, or all with --full. You publish the draft on the page.',
    ],
    argument: { name: 'owner/name#number', completes: 'nothing' },
    options: [
      { name: 'focus', value: 'text', describe: 'Focus the review on this; at most 500 characters' },
      { name: 'full', describe: 'Review the whole change again' },
      { name: 'wait', describe: 'Wait for the end and print the findings' },
      ...toBackend,
      json,
    ],
    examples: ['review owner/name#7', 'review owner/name#7 --full --focus "error handling" --wait'],
    load: () => import('./commands/backend-review.ts'),
  },
  ...serverCommands,
  {
    name: 'acp',
    describe: [
      'Run the agent for an Agent Client Protocol editor.',
      'Editors start it: protocol on standard input and output, messages on standard error.',
    ],
    options: [noStart],
    examples: ['acp'],
    servesForeground: true,
    load: () => import('./commands/acp.ts'),
  },
  {
    name: 'completion',
    describe: ['Print a completion script for your shell.', 'Without a name: for the shell in $SHELL.'],
    argument: { name: 'shell', choices: ['bash', 'zsh', 'fish'], completes: 'choices' },
    options: [],
    examples: ['completion bash >> ~/.bashrc', 'completion fish > ~/.config/fish/completions/oratorio.fish'],
    load: () => import('./commands/completion.ts'),
  },
  {
    name: 'version',
    describe: ['Print the version.'],
    options: [json],
    examples: ['version --json'],
    load: () => import('./commands/version.ts'),
  },
];
