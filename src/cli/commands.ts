/** The command table: help, parsing and shell completion are made from it. In the order of the help. */
import { machineNames } from '../../machines/index.ts';
import type { CommandSpec, OptionSpec } from './command.ts';
import { automationCommands } from './commands-automations.ts';
import { fileCommands } from './commands-files.ts';
import { hostCommands } from './commands-hosts.ts';
import { inboxCommands } from './commands-inbox.ts';
import { mcpCommands } from './commands-mcp.ts';
import { modelCommands } from './commands-model.ts';
import { ruleCommands } from './commands-rules.ts';
import { serverCommands } from './commands-server.ts';
import { logLevels } from './log-levels.ts';
import { effort, inPlace, inWorkspace, json, noStart, placeOptions, plan, workspace, yes } from './shared-options.ts';

const thread: OptionSpec = {
  name: 'thread',
  value: 'id',
  describe: 'Continue this conversation; default: start a new one',
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
  effort,
];

export const commands: readonly CommandSpec[] = [
  {
    name: 'up',
    describe: [
      'Start everything for a workspace and show its events.',
      'Finds or starts the Hub, starts the agent server of the workspace unless it runs, and prints its record and addresses. At a terminal it then follows the events.',
      'Ctrl-C leaves Hub and agent server running; oratorio hub stop ends them.',
    ],
    argument: workspace,
    options: [
      { name: 'init', describe: 'Initialise the directory if it is not a workspace yet' },
      {
        name: 'agent',
        value: 'name',
        describe: 'Use this agent for all turns; see: oratorio agents',
      },
      ...placeOptions,
      { name: 'follow', describe: 'Follow the events without a terminal, too' },
      { name: 'no-follow', describe: 'Return once the agent server runs' },
      noStart,
      json,
    ],
    examples: ['up', 'up ~/projects/site --init', 'up --in container', 'up --agent codex', 'up build:/srv/site'],
    load: () => import('./commands/up.ts'),
  },
  {
    name: 'init',
    describe: ['Make a directory a workspace.', 'Existing files are not changed.'],
    argument: { name: 'dir', completes: 'directories' },
    options: [{ name: 'no-login', describe: 'Skip the offer to connect a model' }, json],
    examples: ['init', 'init ~/projects/site', 'init --no-login'],
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
  ...modelCommands,
  ...ruleCommands,
  {
    name: 'context',
    describe: [
      'Show the beginning of a new conversation.',
      'Prints the parts of the system prompt with their sizes, and the AGENTS.md files that are added when the agent works in the directory.',
    ],
    argument: { name: 'dir', completes: 'directories' },
    options: [json],
    examples: ['context', 'context src/parser', 'context --json'],
    load: () => import('./commands/context.ts'),
  },
  {
    name: 'chat',
    describe: [
      'Talk to the agent of a workspace.',
      'With a prompt or piped input: streams one answer. Without: starts a conversation; Ctrl-C interrupts an answer, a second Ctrl-C ends it.',
      'Write -- before a prompt that begins with a dash.',
    ],
    argument: { name: 'prompt', completes: 'nothing' },
    options: [inWorkspace, thread, ...modelOptions, plan, yes, noStart],
    examples: [
      'chat "hello"',
      'chat',
      'chat --yes "run: npm test"',
      'chat --plan "Split the parser"',
      'chat --workspace ~/projects/site "What is here?"',
      'chat --workspace build:/srv/site',
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
    options: [inWorkspace, thread, ...modelOptions, plan, yes, noStart, json],
    examples: ['exec "Summarise README.md"', 'exec --json < question.txt'],
    load: () => import('./commands/exec.ts'),
  },
  ...fileCommands,
  {
    name: 'list',
    describe: [
      'List all workspaces the Hub knows.',
      'On a terminal: a table that fits its width, with the problem of a workspace below its row. Elsewhere: tab-separated rows without a heading: name, state, agent, model, since, restarts, last turn, cost, page, trouble.',
    ],
    options: [{ name: 'host', value: 'name', describe: 'List only the workspaces of this host' }, noStart, json],
    examples: ['list', 'list --json', 'list --host build'],
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
    name: 'doctor',
    describe: [
      'Check everything and print how to fix it.',
      'Machine, home, Hub and every workspace, or the named one: settings, trust, agent server, model, MCP servers. Changes and starts nothing; each model gets one small request. Exit code 9 when a check fails.',
    ],
    argument: workspace,
    options: [{ name: 'offline', describe: 'Send no request to a model provider' }, json],
    examples: ['doctor', 'doctor ~/projects/site', 'doctor --offline --json'],
    load: () => import('./commands/doctor.ts'),
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
    describe: [
      'Restart the agent server of a workspace.',
      'The configuration is checked first: a server that runs is not stopped for one that cannot be used. A server started by hand is replaced by one that the Hub manages.',
    ],
    argument: workspace,
    options: [noStart, json],
    examples: ['restart', 'restart ~/projects/site'],
    load: () => import('./commands/restart.ts'),
  },
  {
    name: 'place',
    describe: [
      'Show or change the place of an agent server.',
      'With a place, checks the place, then restarts the agent server there. Without, prints the places of this machine, and why a place cannot run an agent server now.',
    ],
    argument: workspace,
    second: inPlace,
    options: [...placeOptions, noStart, json],
    examples: ['place', 'place . container', 'place ~/projects/site local'],
    load: () => import('./commands/place.ts'),
  },
  {
    name: 'stop',
    describe: [
      'Stop the agent server of a workspace.',
      'Returns when all its processes have ended. Unfinished turns resume at the next start. A server started by hand ends, too. A workspace whose directory is gone is removed from the list.',
    ],
    argument: workspace,
    options: [{ name: 'end-turns', describe: 'Cancel unfinished turns instead of suspending them' }, noStart, json],
    examples: ['stop', 'stop ~/projects/site', 'stop --end-turns'],
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
      'The log is its standard error. Tokens are removed. With --json: the unchanged lines.',
    ],
    argument: workspace,
    options: [
      { name: 'follow', alias: 'f', describe: 'Follow the log until Ctrl-C' },
      { name: 'tail', value: 'lines', describe: 'Print only the last lines' },
      { name: 'since', value: 'time', describe: 'Print lines since 10m, 2h, or a time' },
      { name: 'level', value: 'level', choices: logLevels, describe: 'Print this level and more urgent ones' },
      { name: 'grep', value: 'pattern', describe: 'Print lines that match a regular expression' },
      { name: 'stdout', describe: 'Print standard output instead of standard error' },
      noStart,
      json,
    ],
    examples: ['logs', 'logs --tail 20', 'logs --level warn --since 1h', 'logs ~/projects/site --follow'],
    load: () => import('./commands/logs.ts'),
  },
  ...inboxCommands,
  ...automationCommands,
  {
    name: 'agents',
    describe: [
      'List external agents that a workspace can use.',
      'Prints which are installed, whether they ask before they act, and how to install them or log in. Starts none.',
    ],
    options: [json],
    examples: ['agents', 'agents --json'],
    load: () => import('./commands/agents.ts'),
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
    name: 'hub address',
    describe: [
      'Print the address of the Hub.',
      'With --json, also prints a scoped token. The Hub of another machine runs this command over ssh. The token gives access to workspaces: keep it secret.',
    ],
    options: [{ name: 'start', describe: 'Start a Hub if none is running' }, json],
    examples: ['hub address', 'hub address --json --start'],
    load: () => import('./commands/hub-address.ts'),
  },
  ...hostCommands,
  {
    name: 'service install',
    describe: [
      'Start the Hub at log-in.',
      'Writes a user unit of systemd, or a user agent of launchd, and starts it. Needs no root.',
    ],
    options: [json],
    examples: ['service install'],
    load: async () => ({ run: (await import('./commands/service.ts')).install }),
  },
  {
    name: 'service remove',
    describe: ['Stop starting the Hub at log-in.', 'A Hub that runs continues.'],
    options: [json],
    examples: ['service remove'],
    load: async () => ({ run: (await import('./commands/service.ts')).remove }),
  },
  {
    name: 'service status',
    describe: ['Show whether the Hub starts at log-in.'],
    options: [json],
    examples: ['service status', 'service status --json'],
    load: async () => ({ run: (await import('./commands/service.ts')).status }),
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
      'Listens on Api.Host and Api.Port of the configuration (127.0.0.1:8080), even when Api.Enabled is false.',
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
      'Receives webhooks of GitHub, reviews pull requests with the agent servers of their workspaces, and publishes reviews that you allow. Settings are in oratorio.config.json.',
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
      { name: 'demo', describe: 'Review a bundled repository with the demo model, offline' },
      { name: 'open', describe: 'Open the page in a browser' },
      { name: 'print-url', describe: 'Print the address of the page with its token' },
      json,
    ],
    examples: [
      'backend',
      'backend --demo',
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
    options: [{ name: 'login', describe: 'Connect a model provider instead, as oratorio login does' }, noStart],
    examples: ['acp', 'acp --login'],
    servesForeground: true,
    load: () => import('./commands/acp.ts'),
  },
  ...mcpCommands,
  {
    name: 'tokens',
    describe: [
      'List the programs that may lead workspaces.',
      'Each has a scoped token, which `oratorio mcp` gets at its start and gives back at its end. The tokens themselves are not shown.',
    ],
    options: [json, noStart],
    examples: ['tokens', 'tokens --json'],
    load: async () => ({ run: (await import('./commands/tokens.ts')).list }),
  },
  {
    name: 'tokens revoke',
    describe: [
      'Take the rights from one of them at once.',
      'The id is in the list; its beginning is enough while no other begins like it.',
    ],
    argument: { name: 'token', completes: 'nothing' },
    options: [json, noStart],
    examples: ['tokens revoke token_5f3a'],
    load: async () => ({ run: (await import('./commands/tokens.ts')).revoke }),
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
    name: 'self-update',
    describe: [
      'Install the newest release, or go back if it fails.',
      'Updates an installation by install.sh; for any other, prints the update command. Verifies checksum and signature, and tries the new version in a temporary home first. Running turns continue; a running Hub is replaced.',
    ],
    options: [
      { name: 'from', value: 'address', describe: 'Read the release from this https address or directory' },
      { name: 'check', describe: 'Report whether a newer release exists, without installing it' },
      { name: 'allow-older', describe: 'Allow an older release' },
      json,
    ],
    examples: ['self-update', 'self-update --check --json', 'self-update --from ~/Downloads/release'],
    load: () => import('./commands/self-update.ts'),
  },
  {
    name: 'version',
    describe: ['Print the version.'],
    options: [json],
    examples: ['version --json'],
    load: () => import('./commands/version.ts'),
  },
];
