/** The command table: help, parsing and shell completion are made from it. In the order of the help. */
import type { ArgumentSpec, CommandSpec, OptionSpec } from './command.ts';
import { serverCommands } from './commands-server.ts';

const json: OptionSpec = { name: 'json', describe: 'Print JSON for programs; an error is printed as {"error":{…}}' };
const noStart: OptionSpec = { name: 'no-start', describe: 'Fail (exit code 3) instead of starting a Hub' };
const yes: OptionSpec = {
  name: 'yes',
  alias: 'y',
  describe: 'Allow everything the agent asks for, shell commands included',
};
const thread: OptionSpec = {
  name: 'thread',
  value: 'id',
  describe: 'Go on with this conversation; default: a new one',
};
const workspace: ArgumentSpec = { name: 'workspace', completes: 'directories' };
const inWorkspace: OptionSpec = {
  name: 'workspace',
  value: 'dir',
  describe: 'Workspace directory; default: the current one',
};
const state: OptionSpec = {
  name: 'state',
  value: 'dir',
  describe: 'Where it keeps everything; default: $ORATORIO_STATE_ROOT, or backend in the home',
};
/** Which review backend is asked, and where its token is. */
const toBackend: readonly OptionSpec[] = [
  { name: 'url', value: 'url', describe: 'Its address; default: http://127.0.0.1:5087' },
  state,
];
const automation: ArgumentSpec = { name: 'id', completes: 'nothing' };
const wait: OptionSpec = {
  name: 'wait',
  describe: 'Wait for its end and print the answer; exit code 1 when it failed',
};
/** What `cron add` and `task add` share. */
const automationOptions: readonly OptionSpec[] = [
  { name: 'every', value: 'duration', describe: 'Again and again, e.g. 15m, 2h, 1d; a minute at least' },
  { name: 'at', value: 'moment', describe: 'Once: 2026-12-24T18:00 (local, or with a zone), or from now: +30m' },
  { name: 'daily', value: 'time', describe: 'Every day at a time of the day, e.g. 07:30' },
  { name: 'cron', value: 'expression', describe: 'Five fields: minute, hour, day of month, month, day of week' },
  {
    name: 'tz',
    value: 'zone',
    describe: 'Time zone of --daily and --cron, e.g. Europe/Berlin; default: of this machine',
  },
  { name: 'name', value: 'name', describe: 'Default: the beginning of the prompt' },
  {
    name: 'thread',
    value: 'id',
    describe: 'In this conversation, or "own": always the same; default: a new one each time',
  },
  { name: 'model', value: 'model', describe: 'Another model than the configured one' },
  { name: 'once', describe: 'Remove it when it has completed (one-offs)' },
  { name: 'disabled', describe: 'Do not switch it on yet' },
  { name: 'ask', describe: 'What needs approval waits for somebody to answer; default: it is declined' },
  { ...yes, describe: 'Allow everything it asks for, shell commands included' },
];

export const commands: readonly CommandSpec[] = [
  {
    name: 'up',
    describe: [
      'Start everything for a workspace and show what happens.',
      'Finds or starts the Hub, makes sure that the agent server of the workspace runs, prints its record and addresses, then follows its events.',
      'Ctrl-C leaves Hub and agent server running.',
    ],
    argument: workspace,
    options: [
      { name: 'init', describe: 'Make the directory a workspace first, if it is none' },
      { name: 'no-follow', describe: 'Return once the agent server runs' },
      noStart,
      json,
    ],
    examples: ['up', 'up ~/projects/site --init', 'up --no-follow --json'],
    load: () => import('./commands/up.ts'),
  },
  {
    name: 'init',
    describe: ['Make a directory a workspace.', 'Nothing of what is there already is changed.'],
    argument: { name: 'dir', completes: 'directories' },
    options: [json],
    examples: ['init', 'init ~/projects/site'],
    load: () => import('./commands/init.ts'),
  },
  {
    name: 'trust',
    describe: [
      'Let a workspace use settings that start programs or send data.',
      'Shows every sensitive setting in the config.json of the workspace and asks. Until you agree, and again when they change, these settings are ignored.',
      'Your own protections (sandbox, blocked paths, approval policy, listen addresses, keys) hold in a trusted workspace too.',
    ],
    argument: workspace,
    options: [
      { name: 'yes', alias: 'y', describe: 'Agree without a question' },
      { name: 'revoke', describe: 'Restrict the workspace again' },
      { name: 'list', describe: 'List the workspaces you trust' },
      json,
    ],
    examples: ['trust', 'trust ~/projects/site --yes', 'trust ~/projects/site --revoke', 'trust --list --json'],
    load: () => import('./commands/trust.ts'),
  },
  {
    name: 'chat',
    describe: [
      'Talk to the agent of a workspace.',
      'With a prompt (or piped input): one answer, streamed as it comes. Without: a conversation; Ctrl-C interrupts an answer, a second one leaves.',
      'A prompt that begins with a dash goes after --.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [
      { name: 'workspace', value: 'dir', describe: 'Workspace directory; default: the current one' },
      thread,
      yes,
      noStart,
    ],
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
      'The prompt may be piped. Nobody is asked for approval: what needs one is declined, or allowed with --yes.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [
      { name: 'workspace', value: 'dir', describe: 'Workspace directory; default: the current one' },
      thread,
      yes,
      noStart,
      json,
    ],
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
      'With a workspace: prints its record; with --open, opens its dashboard at the statecharts of its actors. Without: opens the page of the Hub. The access token is printed on a terminal only, or with --print-url.',
    ],
    argument: workspace,
    options: [
      { name: 'open', describe: 'Open the page in a browser, whatever else' },
      { name: 'print-url', describe: 'Print the address with its access token; open nothing' },
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
    options: [{ name: 'inspect-only', describe: 'Start nothing: print what is there' }, noStart, json],
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
    describe: ['Stop the agent server of a workspace.', 'Returns when all its processes are gone.'],
    argument: workspace,
    options: [noStart, json],
    examples: ['stop', 'stop ~/projects/site'],
    load: () => import('./commands/stop.ts'),
  },
  {
    name: 'events',
    describe: ['Follow the events of the Hub.', 'Goes on by itself when the connection breaks, without losing events.'],
    options: [
      { name: 'since', value: 'id', describe: 'Begin after this event id (printed by --json)' },
      { name: 'workspace', value: 'dir', describe: 'Only events of this workspace' },
      noStart,
      json,
    ],
    examples: ['events', 'events --json --since 5f3a91c2-17', 'events --workspace .'],
    load: () => import('./commands/events.ts'),
  },
  {
    name: 'logs',
    describe: ['Show what the agent server of a workspace has written.', 'Standard error; tokens are removed.'],
    argument: workspace,
    options: [
      { name: 'follow', alias: 'f', describe: 'Go on with what is written from now on' },
      { name: 'stdout', describe: 'Standard output instead' },
      noStart,
    ],
    examples: ['logs', 'logs ~/projects/site --follow'],
    load: () => import('./commands/logs.ts'),
  },
  {
    name: 'cron list',
    describe: ['List the jobs of a workspace, the next one first.'],
    options: [inWorkspace, noStart, json],
    examples: ['cron list', 'cron list --workspace ~/projects/site --json'],
    load: async () => ({ run: (await import('./commands/cron.ts')).list }),
  },
  {
    name: 'cron add',
    describe: [
      'Say something to the agent of a workspace again and again.',
      'Runs for as long as the agent server does. What was due meanwhile is made up for, once. The prompt may be piped.',
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
    describe: ['Show a job or task: when it is due, and what became of its runs.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron show standup', 'cron show job_1f0c5e2a9b3d --json'],
    load: async () => ({ run: (await import('./commands/cron.ts')).show }),
  },
  {
    name: 'cron run',
    describe: ['Run a job or task now, besides its schedule.'],
    argument: automation,
    options: [inWorkspace, wait, noStart, json],
    examples: ['cron run standup', 'cron run standup --wait'],
    load: async () => ({ run: (await import('./commands/cron.ts')).run }),
  },
  {
    name: 'cron cancel',
    describe: ['End the run of a job or task that is under way or waits for a retry.', 'Its schedule goes on.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron cancel standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).cancel }),
  },
  {
    name: 'cron enable',
    describe: ['Switch a job or task on.', 'What was due while it was off is not made up for.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron enable standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).enable }),
  },
  {
    name: 'cron disable',
    describe: ['Switch a job or task off.', 'A run that is under way goes on.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron disable standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).disable }),
  },
  {
    name: 'cron remove',
    describe: ['Remove a job or task and its history.', 'A run that is under way is ended.'],
    argument: automation,
    options: [inWorkspace, noStart, json],
    examples: ['cron remove standup'],
    load: async () => ({ run: (await import('./commands/cron.ts')).remove }),
  },
  {
    name: 'task list',
    describe: ['List the local tasks of a workspace.', 'All of `cron` but `list` and `add` work for tasks too.'],
    options: [inWorkspace, noStart, json],
    examples: ['task list'],
    load: async () => ({ run: (await import('./commands/cron.ts')).listTasks }),
  },
  {
    name: 'task add',
    describe: [
      'Give the agent of a workspace a piece of work.',
      'Without a schedule it runs once, as soon as there is room. The prompt may be piped.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [inWorkspace, ...automationOptions, wait, noStart, json],
    examples: ['task add "Tidy up the imports"', 'task add --at 2026-12-24T18:00 "Write the release notes"'],
    load: async () => ({ run: (await import('./commands/cron.ts')).addTask }),
  },
  {
    name: 'machines',
    describe: ['Print the statecharts everything runs on.', 'Without a name: a list of them.'],
    argument: {
      name: 'name',
      choices: [
        'hub',
        'agent-server',
        'api-proxy',
        'turn',
        'mcp-server',
        'scheduler',
        'automation',
        'review-run',
        'stack-change',
        'webhook-ingress',
      ],
      completes: 'choices',
    },
    options: [
      {
        name: 'format',
        value: 'format',
        choices: ['mermaid', 'json', 'svg'],
        describe: 'mermaid (default), json or svg',
      },
      json,
    ],
    examples: ['machines', 'machines agent-server', 'machines hub --format svg > hub.svg'],
    load: () => import('./commands/machines.ts'),
  },
  {
    name: 'hub',
    describe: ['Run the Hub in the foreground.', 'Ends at once, with exit code 0, when another Hub serves this user.'],
    options: [],
    examples: ['hub'],
    servesForeground: true,
    load: () => import('./commands/hub.ts'),
  },
  {
    name: 'hub status',
    describe: ['Show the running Hub.', 'Starts none: exit code 3 when there is none.'],
    options: [json],
    examples: ['hub status', 'hub status --json'],
    load: () => import('./commands/hub-status.ts'),
  },
  {
    name: 'hub stop',
    describe: ['Stop the Hub and all agent servers it manages.'],
    options: [{ name: 'detach', describe: 'Leave the agent servers running for the next Hub (upgrades)' }, json],
    examples: ['hub stop', 'hub stop --detach'],
    load: () => import('./commands/hub-stop.ts'),
  },
  {
    name: 'app-server',
    describe: [
      'Run an agent server in the foreground.',
      'The Hub does this for you; a server you run yourself is found by the Hub and used as it is.',
    ],
    options: [
      { name: 'workspace', value: 'dir', describe: 'Workspace directory; default: the current one' },
      { name: 'port', value: 'port', describe: 'Port of the WebSocket; default: any free one' },
      { name: 'stdio', describe: 'Speak JSON-RPC on standard input and output as well; end of input ends the server' },
      { name: 'print-schema', describe: 'Print the protocol as an OpenRPC document and leave' },
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
    options: [{ name: 'workspace', value: 'dir', describe: 'Workspace directory; default: the current one' }],
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
    options: [{ name: 'workspace', value: 'dir', describe: 'Workspace directory; default: the current one' }],
    examples: ['gateway', 'gateway --workspace ~/projects/site'],
    servesForeground: true,
    load: () => import('./commands/gateway.ts'),
  },
  {
    name: 'dashboard',
    describe: [
      'Look at what a workspace has recorded.',
      'A read-only viewer that needs no agent server and works beside one. A running agent server has a dashboard of its own: oratorio inspect <workspace> --open.',
      'The access token is printed on a terminal only, or with --print-url.',
    ],
    options: [
      { name: 'workspace', value: 'dir', describe: 'Workspace directory; default: the current one' },
      { name: 'port', value: 'port', describe: 'Listen here or nowhere; default: DashBoard.Port, or another free one' },
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
      'Takes webhooks of GitHub, has pull requests reviewed by the agent servers of their workspaces, and writes back what you allow. Settings are in oratorio.config.json.',
      'The API asks for the token in service.token of the state directory; the address of the page with it is printed on a terminal only, or with --print-url.',
    ],
    options: [
      {
        name: 'config',
        value: 'file',
        describe: 'The settings; default: $ORATORIO_CONFIG_PATH, or oratorio.config.json in the state directory',
      },
      state,
      { name: 'port', value: 'port', describe: 'Default: Server.Port of the settings (5087); 0: any free one' },
      { name: 'host', value: 'host', describe: 'Default: Server.Host of the settings (127.0.0.1)' },
      {
        name: 'role',
        value: 'role',
        choices: ['all', 'web', 'worker'],
        describe: 'web: webhook and API only; worker: reviews only; default: Server.Role of the settings (all)',
      },
      { name: 'open', describe: 'Open its page in a browser' },
      { name: 'print-url', describe: 'Print the address of its page with the token that opens it' },
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
    describe: ['Show what a review backend is, and whether it is ready.'],
    options: [...toBackend, json],
    examples: ['backend status', 'backend status --url https://reviews.your-company.com --json'],
    load: () => import('./commands/backend-status.ts'),
  },
  {
    name: 'review',
    describe: [
      'Have a pull request reviewed by a review backend that runs.',
      'What is new since its last review, or all of it. The draft waits on the page to be published.',
    ],
    argument: { name: 'owner/name#number', completes: 'nothing' },
    options: [
      { name: 'focus', value: 'text', describe: 'What to look at in particular; 500 characters at most' },
      { name: 'full', describe: 'The whole change, also what was reviewed before' },
      { name: 'wait', describe: 'Wait for its end and print what was found; exit code 1 when it failed' },
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
      'Be the agent of an editor that speaks the Agent Client Protocol.',
      'For editors to run: protocol on standard input and output, messages on standard error.',
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
