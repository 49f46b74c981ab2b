import * as v from 'valibot';
import { isHttpUrl, isLoopback } from '../lib/index.ts';
import {
  approvalPolicies,
  defaults,
  HostName,
  McpServerName,
  McpServerSettings,
  maxHosts,
  RemoteProgram,
  SshTarget,
} from '../protocol/index.ts';
import { HookSettings } from './hook-settings.ts';
import { HttpUrlOrEmpty, modelSettings } from './model-settings.ts';
import { PermissionRules } from './rule-settings.ts';

const { supervise } = defaults;

const flag = (value: boolean, description: string) =>
  v.pipe(v.optional(v.boolean('true or false'), value), v.description(description));
const text = (value: string, description: string) =>
  v.pipe(v.optional(v.string('a string'), value), v.description(description));

const visibleKey = 'empty, or 1 to 512 visible ASCII characters';
/** Key that clients send in a header. */
const key = (description: string) =>
  v.pipe(
    v.optional(v.pipe(v.string(visibleKey), v.regex(/^[!-~]{0,512}$/, visibleKey)), ''),
    v.description(description),
  );

function whole(value: number, min: number, max: number, description: string) {
  const range = `a whole number from ${min} to ${max}`;
  const number = v.pipe(v.number(range), v.integer(range), v.minValue(min, range), v.maxValue(max, range));
  return v.pipe(v.optional(number, value), v.description(description));
}

/** Longest duration that a timer of Node can wait, in milliseconds (2^31 − 1). */
const longestMs = 2_147_483_647;
const duration = (value: number, min: number, description: string) =>
  whole(value, min, longestMs, `${description} Milliseconds.`);
const port = (value: number, description: string) => whole(value, 0, 65_535, description);

const hostName = (value: string, description: string) =>
  v.pipe(
    v.optional(v.pipe(v.string('a host name or address'), v.trim(), v.nonEmpty('a host name or address')), value),
    v.description(description),
  );

/** Push services refuse a contact whose domain cannot exist on the Internet (RFC 2606, RFC 6761, RFC 6762). */
function isPushSubject(value: string): boolean {
  if (value === '') return true;
  const domain = /^mailto:[^\s@]+@([^\s@]+)$/.exec(value)?.[1];
  const isWeb = value.startsWith('https://') && URL.canParse(value);
  const host = (domain ?? (isWeb ? new URL(value).hostname : '')).toLowerCase().replace(/\.$/, '');
  return /^[^\s.[\]]+(?:\.[^\s.[\]]+)*\.[a-z][a-z0-9-]+$/.test(host) && !reservedDomain.test(host);
}

const reservedDomain = /(?:^|\.)(?:invalid|local|localhost|test|example|internal|home\.arpa|onion)$/;

const loopbackOnly = 'a loopback address (127.x.x.x, ::1 or localhost)';

/** Tools as users write them (design §6). */
export const toolNames = [
  'ReadFile',
  'WriteFile',
  'EditFile',
  'GrepFiles',
  'FindFiles',
  'Exec',
  'WebFetch',
  'WebSearch',
  'SpawnSubagent',
] as const;
/** Tools that the chat API offers only when `Api.EnabledTools` names them. */
export const extraToolNames = ['UpdatePlan', 'AskUser', 'ExecOutput', 'ExecInput', 'ExecStop', 'Skill'] as const;
const everyTool = [...toolNames, ...extraToolNames];
const canonicalTools = new Map<string, string>(everyTool.map((name) => [name.toLowerCase(), name]));
const knownTool = `one of ${everyTool.join(', ')}, or mcp__<server>__<tool>`;
/** Tools of MCP servers exist only while their server runs, so of these the form alone is checked. */
const mcpTool = /^mcp__\S+?__\S+$/i;
const ToolName = v.pipe(
  v.string(knownTool),
  v.check((name) => canonicalTools.has(name.toLowerCase()) || mcpTool.test(name), knownTool),
  // The name of an MCP tool as models are shown it, see `ToolNames`.
  v.transform((name) => canonicalTools.get(name.toLowerCase()) ?? name.replace(/[^a-zA-Z0-9_-]/g, '_')),
);

const variableName = 'a name of an environment variable';

const Api = v.object({
  Enabled: flag(false, 'Serves the chat-completions API.'),
  Responses: flag(true, 'Serves the Responses API as well.'),
  Host: hostName('127.0.0.1', 'Listen address.'),
  Port: port(8080, 'Listen port. A managed agent server takes its port from the Hub instead.'),
  ApiKey: key('Bearer key of the API; empty: only this user is served without the generated key.'),
  AutoApprove: flag(true, 'Approves operations that need approval; false rejects them.'),
  EnabledTools: v.pipe(
    v.optional(v.array(ToolName, 'a list of tool names'), []),
    v.description(
      'Enabled tools of the chat API, among those of EnabledTools; empty enables all but UpdatePlan, AskUser, ExecOutput, ExecInput, ExecStop and Skill.',
    ),
  ),
  ApprovalMode: v.pipe(
    v.optional(v.picklist(['policy', 'interactive'], '"policy" or "interactive"'), 'policy'),
    v.description('policy: AutoApprove decides. interactive: a client decides at /v1/approvals.'),
  ),
  ApprovalTimeoutSeconds: whole(120, 1, 86_400, 'How long an interactive approval waits before it declines itself.'),
  OnDisconnect: v.pipe(
    v.optional(v.picklist(['cancel', 'detach'], '"cancel" or "detach"'), 'cancel'),
    v.description('Fate of a turn whose caller disconnects: ended after a grace period, or finished for the session.'),
  ),
  DisconnectGraceMs: duration(5_000, 0, 'How long a caller with a session may be gone before its turn is ended.'),
  MaxConcurrentTurns: whole(64, 1, 10_000, 'Turns at once; more are answered 429.'),
  SessionFromUser: flag(
    false,
    'Continues one conversation for all requests with the same `user`, unless they name a session. Default: `user` names traces only.',
  ),
  ShowToolActivity: flag(true, 'Mirrors tool activity into reasoning_content, where chat clients show it.'),
});

const DashBoard = v.pipe(
  v.object({
    Enabled: v.pipe(
      v.optional(v.boolean('true or false')),
      v.description('Serves the dashboard. Default: true when Host is loopback.'),
    ),
    Host: hostName('127.0.0.1', 'Listen address.'),
    Port: port(8080, 'Listen port. A managed agent server takes its port from the Hub instead.'),
    Auth: v.pipe(
      v.optional(v.picklist(['token', 'none'], '"token" or "none"'), 'token'),
      v.description(
        'token: requests need the token of this user, or a log-in. none: requests need nothing, on loopback only.',
      ),
    ),
    Username: text('', 'Name to log in with, for hosts that are shared; needs Password.'),
    Password: text('', 'Password to log in with.'),
    AllowedHosts: v.pipe(
      v.optional(v.array(v.pipe(v.string(), v.nonEmpty()), 'a list of host names'), []),
      v.description('Host names it is reached by besides localhost and plain addresses.'),
    ),
  }),
  v.transform((settings) => ({ ...settings, Enabled: settings.Enabled ?? isLoopback(settings.Host) })),
);

const Automations = v.object({
  Enabled: flag(true, 'Runs cron jobs and local tasks.'),
  MaxConcurrentRuns: whole(3, 1, 1_000, 'Runs at once; more wait.'),
  TurnTimeoutMinutes: whole(30, 1, 1_440, 'A run that takes longer is ended.'),
  MaxRetries: whole(3, 0, 100, 'Times a failed run is tried again.'),
  RetryInitialDelayMs: duration(30_000, 0, 'Before the first retry; doubled with each.'),
  RetryMaxDelayMs: duration(600_000, 0, 'Longest pause before a retry.'),
});

const Tracing = v.object({
  Enabled: flag(true, 'Records the events of sessions for the Dashboard.'),
  RetentionDays: whole(30, 0, 36_500, 'Sessions that were not active for so long are deleted; 0 keeps them.'),
  MaxEvents: whole(
    1_000_000,
    0,
    1_000_000_000,
    'Oldest sessions are deleted beyond this many events; 0 sets no limit.',
  ),
});

const Checkpoints = v.object({
  Enabled: flag(true, 'Saves the files of the workspace before and after each turn, so that turns can be taken back.'),
  MaxFileMiB: whole(64, 1, 1_024, 'Larger files are in no checkpoint.'),
  MaxIgnoredFileMiB: whole(16, 1, 1_024, 'Larger files that git ignores are in no checkpoint.'),
  MaxEntries: whole(
    200_000,
    100,
    10_000_000,
    'In a workspace with more files and directories, those that git ignores are in no checkpoint.',
  ),
  MaxStoreMiB: whole(5_120, 16, 10_000_000, 'Oldest checkpoints are deleted beyond this size of the store.'),
  RetentionDays: whole(14, 1, 36_500, 'Older checkpoints are deleted.'),
});

const Telemetry = v.object({
  Enabled: flag(false, 'Exports turns, tools, model calls and supervised transitions as OpenTelemetry traces.'),
  Endpoint: v.pipe(
    v.optional(HttpUrlOrEmpty, ''),
    v.description('OTLP/HTTP endpoint for traces; empty: http://127.0.0.1:4318/v1/traces.'),
  ),
  Headers: v.pipe(
    v.optional(v.record(v.string(), v.string('a text')), {}),
    v.description('Headers of an export, e.g. Authorization; values are secret.'),
  ),
  IncludeContent: flag(false, 'Also exports messages, and the arguments and results of tools.'),
});

const pushSubject = 'a mailto: or https: address';
const httpsOrPrivate = 'an https URL with a topic, or an http one of this machine or a private network';

/** http carries the token in the clear: only to this machine and to addresses of private networks (RFC 1918, 4193, 6598). */
function isHttpsOrPrivate(value: string): boolean {
  if (!isHttpUrl(value)) return false;
  const { protocol, hostname, pathname } = new URL(value);
  const isPrivate = /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|\[f[cd])/;
  return pathname !== '/' && (protocol === 'https:' || isLoopback(hostname) || isPrivate.test(hostname));
}

const Ntfy = v.object({
  Url: v.pipe(
    v.optional(
      v.pipe(
        v.string(httpsOrPrivate),
        v.trim(),
        v.check((value) => value === '' || isHttpsOrPrivate(value), httpsOrPrivate),
      ),
      '',
    ),
    v.description('Topic of an ntfy server, e.g. https://ntfy.sh/my-long-random-topic; empty: none.'),
  ),
  Token: text('', 'Access token of that server.'),
});

const Notifications = v.object({
  Ntfy: v.optional(Ntfy, {}),
  Desktop: flag(false, 'Shows notices on the desktop of this machine (notify-send, osascript).'),
  PageUrl: v.pipe(
    v.optional(HttpUrlOrEmpty, ''),
    v.description(
      'Address by which your other devices reach the page, for the links of notices; empty: that of the Hub.',
    ),
  ),
  PushSubject: v.pipe(
    v.optional(v.pipe(v.string(pushSubject), v.trim(), v.check(isPushSubject, pushSubject)), ''),
    v.description('Contact for the push services of browser makers; empty: the address of this project.'),
  ),
});

const AgUi = v.object({
  Enabled: flag(false, 'Serves the AG-UI protocol.'),
  Host: hostName('127.0.0.1', 'Listen address.'),
  Port: port(5100, 'Listen port. A managed agent server takes its port from the Hub instead.'),
  Path: v.pipe(
    v.optional(
      v.pipe(v.string('a path that begins with /'), v.regex(/^\/[^?#\s]*$/, 'a path that begins with /')),
      '/ag-ui',
    ),
    v.description('Path of the endpoint.'),
  ),
  ApiKey: key('Bearer key of the endpoint; empty: only this user is served without the generated key.'),
});

const windowRange = '0, or a whole number from 1000 to 100000000';

const Compaction = v.object({
  AutoCompactEnabled: flag(true, 'Summarises older turns before the context of the model is full.'),
  ContextWindow: v.pipe(
    v.optional(
      v.pipe(
        v.number(windowRange),
        v.integer(windowRange),
        v.maxValue(100_000_000, windowRange),
        v.check((tokens) => tokens === 0 || tokens >= 1_000, windowRange),
      ),
      0,
    ),
    v.description('Tokens that models can take in; 0: as known of each model.'),
  ),
  ReserveTokens: whole(20_000, 100, 10_000_000, 'Tokens kept free for the answer.'),
  KeepRecentTurns: whole(3, 1, 1000, 'Turns that are never summarised.'),
});

const Tools = v.object({
  File: v.optional(
    v.object({ MaxFileBytes: whole(10_485_760, 1_024, 1_073_741_824, 'Larger files are neither read nor written.') }),
    {},
  ),
  Shell: v.optional(
    v.object({
      TimeoutMs: duration(120_000, 100, 'A command that runs longer is ended.'),
      MaxTimeoutMs: duration(600_000, 100, 'The longest that the model may ask for.'),
      MaxOutputChars: whole(30_000, 1_000, 10_000_000, 'Of output that the model is shown; the rest is left out.'),
      Setup: text(
        '',
        'Commands that prepare the environment of all others, e.g. `nvm use`. They run once for each directory, in the sandbox or not at all, after the profile of the login shell.',
      ),
      Sandbox: v.pipe(
        v.optional(v.picklist(['off', 'auto', 'required'], '"off", "auto" or "required"'), 'auto'),
        v.description('Runs commands in a sandbox: auto where there is one, required or not at all.'),
      ),
      Network: v.pipe(
        v.optional(v.picklist(['deny', 'allow'], '"deny" or "allow"'), 'deny'),
        v.description(
          'Whether a sandboxed command reaches the network, this machine included. No effect without sandbox.',
        ),
      ),
      VisibleHome: v.pipe(
        v.optional(v.array(v.string('a path')), []),
        v.description('Paths of the home that sandboxed commands can read, besides those of tool chains.'),
      ),
    }),
    {},
  ),
  Web: v.optional(
    v.object({
      MaxBytes: whole(2_097_152, 1_024, 104_857_600, 'Of a fetched page.'),
      MaxChars: whole(50_000, 500, 10_000_000, 'Of a fetched page that the model is shown.'),
      TimeoutMs: duration(30_000, 100, 'For one fetch or search, redirects included.'),
      AllowedHosts: v.pipe(
        v.optional(v.array(v.pipe(v.string(), v.nonEmpty()), 'a list of host names'), []),
        v.description('Hosts that may be fetched although they are private, e.g. docs.internal or 127.0.0.1:8000.'),
      ),
      SearchProvider: v.pipe(
        v.optional(
          v.picklist(['none', 'searxng', 'brave', 'exa', 'tavily'], '"none", "searxng", "brave", "exa" or "tavily"'),
          'none',
        ),
        v.description('Search provider of WebSearch.'),
      ),
      SearchUrl: text('', 'Base URL of the SearXNG instance, or another address of the provider.'),
      SearchApiKey: text('', 'Key of the search provider.'),
    }),
    {},
  ),
});

const SubAgent = v.object({
  MaxDepth: whole(1, 0, 5, 'How deep sub-agents may start sub-agents; 0 allows none.'),
  MaxConcurrency: whole(3, 1, 100, 'Sub-agents of one turn at once.'),
  MaxToolCallRounds: whole(50, 1, 10_000, 'Requests to the model in one run of a sub-agent.'),
  Model: text('', 'Another model for sub-agents; empty: the same.'),
  ExploreModel: text('', 'A model for sub-agents that explore, mostly a cheaper one; empty: that of all sub-agents.'),
});

const Permissions = v.object({
  DefaultApprovalPolicy: v.pipe(
    v.optional(v.picklist(approvalPolicies, '"default", "autoApprove" or "interrupt"'), 'default'),
    v.description('Answer to operations that need approval: ask the user, allow, or decline.'),
  ),
  ApprovalTimeoutSeconds: whole(300, 1, 86_400, 'How long an approval waits before it declines itself.'),
  BlockedPaths: v.pipe(
    v.optional(v.array(v.pipe(v.string(), v.nonEmpty()), 'a list of paths'), []),
    v.description('Never read nor written by tools, with or without approval. Relative to the workspace, or absolute.'),
  ),
  Rules: PermissionRules,
  WorktreeRoot: text(
    '',
    'Directory below which a client may let a conversation work instead of in the workspace, besides .oratorio/worktrees in it and beside it.',
  ),
});

const Turns = v.object({
  Resume: v.pipe(
    v.optional(v.picklist(['auto', 'ask', 'never'], '"auto", "ask" or "never"'), 'auto'),
    v.description('Whether a turn continues after its agent server ends: automatically, after an approval, or not.'),
  ),
  MaxResumes: whole(3, 0, 4, 'Times that a turn may continue without a finished step in between.'),
  ResumeWithinHours: whole(24, 1, 8_760, 'Hours after which an unfinished turn no longer continues.'),
  HandOverSeconds: whole(
    10,
    0,
    supervise.maxHandOverMs / 1_000,
    'Time that a turn gets to finish its current step before a restart or a stop.',
  ),
  KeepCommands: v.pipe(
    v.optional(v.boolean(), true),
    v.description('Whether commands outlive their agent server if a Hub manages it.'),
  ),
  KeepSeconds: whole(600, 1, 86_400, 'Time that such a command waits for the next agent server.'),
  ResumeAgents: v.pipe(
    v.optional(v.boolean(), false),
    v.description('Whether an external agent is asked to continue its turn; its earlier work is unknown.'),
  ),
});

const Quota = v.object({
  Wait: v.pipe(
    v.optional(v.picklist(['auto', 'ask', 'never'], '"auto", "ask" or "never"'), 'ask'),
    v.description(
      'Whether a turn waits when a quota of the model provider is used up: automatically, after an approval, or never. It always waits out pauses of up to 120 s.',
    ),
  ),
  MaxWaitHours: whole(12, 1, 336, 'Longest total wait for quotas until the model answers.'),
});

const Hub = v.object({
  Host: v.pipe(
    v.optional(v.pipe(v.string(loopbackOnly), v.trim(), v.check(isLoopback, loopbackOnly)), '127.0.0.1'),
    v.description('Listen address of the Hub: loopback only.'),
  ),
  Port: port(0, 'Listen port of the Hub; 0 takes that of its last start, or the next free one from 7717 on.'),
  AllowedHosts: v.pipe(
    v.optional(v.array(v.pipe(v.string(), v.nonEmpty()), 'a list of host names'), []),
    v.description('Host names the Hub is reached by besides localhost, e.g. those of an HTTPS proxy.'),
  ),
});

const Host = v.object({
  Ssh: v.pipe(
    SshTarget,
    v.description('Address for ssh, such as ssh://me@box; a host alias of the ssh configuration is allowed.'),
  ),
  Program: v.pipe(v.optional(RemoteProgram, 'oratorio'), v.description('Command on that machine.')),
  Enabled: flag(true, 'Connects the host.'),
});

const WebSocketListener = v.object({
  Host: hostName('127.0.0.1', 'Listen address of an agent server that no Hub manages.'),
  Port: port(0, 'Listen port; 0 takes a free one.'),
  Token: text('', 'Token of the WebSocket; empty makes a fresh one at every start.'),
});

const Supervision = v.object({
  Restart: v.pipe(
    v.optional(v.picklist(['never', 'onFailure', 'always'], '"never", "onFailure" or "always"'), 'onFailure'),
    v.description('When an agent server that has ended by itself is started again.'),
  ),
  MaxRestarts: whole(
    supervise.maxRestarts,
    0,
    1000,
    'Restarts within WithinSeconds after which the supervisor gives up.',
  ),
  WithinSeconds: whole(supervise.withinSeconds, 1, 86_400, 'The window of MaxRestarts.'),
  BackoffBaseMs: duration(
    supervise.backoffBaseMs,
    0,
    'Longest pause before the first restart; doubles with every failure.',
  ),
  BackoffCapMs: duration(supervise.backoffCapMs, 0, 'Longest pause before any restart.'),
  ProbeIntervalMs: duration(
    supervise.probeIntervalMs,
    100,
    'Longest time without news of the health of a server; then it is probed.',
  ),
  ProbeTimeoutMs: duration(supervise.probeTimeoutMs, 50, 'A probe without an answer after this time has failed.'),
  LivenessFailures: whole(supervise.livenessFailures, 1, 1000, 'Failed probes in a row that make a server unhealthy.'),
  UnhealthyGraceMs: duration(
    supervise.unhealthyGraceMs,
    0,
    'How long an unhealthy server may recover before it is restarted.',
  ),
  StartDeadlineMs: duration(supervise.startDeadlineMs, 100, 'A server that is not ready after this time is ended.'),
  IdleStopMinutes: whole(
    supervise.idleStopMinutes,
    0,
    35_791,
    'A server without work for this long is asleep until the next request; 0 means never.',
  ),
  PassEnvironment: v.pipe(
    v.optional(
      v.array(
        v.pipe(v.string(variableName), v.regex(/^[^=\0]+$/, variableName)),
        'a list of names of environment variables',
      ),
      [],
    ),
    v.description('Environment variables that an agent server gets besides the usual ones.'),
  ),
});

/**
 * The whole configuration (specification §2.1, design §1 and §3). Messages complete the sentence "… must be …". Keys are
 * matched without case before this schema sees them; keys it does not name are warned about and dropped.
 */
/** Choice of the agent that does the turns. */
const Agent = v.object({
  Kind: v.pipe(
    v.optional(v.picklist(['', 'oratorio', 'acp'], '"oratorio", "acp" or empty'), ''),
    v.description(
      '`oratorio`: the agent of this product, and the named one is there for sub-agents; `acp`: the named one, over the Agent Client Protocol. Empty: by the name.',
    ),
  ),
  Name: text('', 'Name of the agent; codex, claude, gemini, opencode, qwen, goose and pi need no command.'),
  Command: v.pipe(
    v.optional(v.array(v.string(), 'a list of texts'), []),
    v.description(
      'Program and arguments of an agent that has no preset, or of another program than that of the preset.',
    ),
  ),
  Env: v.pipe(
    v.optional(v.record(v.string(), v.string()), {}),
    v.description('Variables for the agent, besides those that every program gets.'),
  ),
});

/** Absolute path, with the suffix `:ro` for a read-only mount. */
const mountPath = 'an absolute path, with the suffix :ro for a read-only mount';

const podVolume = 'a volume, <path>=claim:<name> or <path>=hostPath:<path>';

const Place = v.object({
  Default: v.pipe(
    v.optional(v.picklist(['local', 'container'], '"local" or "container"'), 'local'),
    v.description('Default place of agent servers. A workspace can have its own place.'),
  ),
  Container: v.optional(
    v.object({
      Engine: text(
        '',
        'Unix socket of the container engine; empty: the socket of a rootless engine, else the usual sockets.',
      ),
      Image: text(
        'buildpack-deps:bookworm-scm',
        'Image with a shell, git and the GNU C library. Oratorio never pulls it.',
      ),
      Network: v.pipe(
        v.optional(v.picklist(['none', 'bridge'], '"none" or "bridge"'), 'bridge'),
        v.description('Network of the container. With none, the agent server can reach only models on this machine.'),
      ),
      MemoryMiB: whole(4_096, 0, 16_777_216, 'Memory limit of the container in MiB; 0: no limit.'),
      Cpus: whole(0, 0, 1_024, 'Processor limit of the container; 0: no limit.'),
      Pids: whole(4_096, 64, 1_048_576, 'Maximum number of processes and threads in the container.'),
      Mounts: v.pipe(
        v.optional(v.array(v.pipe(v.string(mountPath), v.startsWith('/', mountPath)), 'a list of paths'), []),
        v.description(
          'Further files and directories, mounted at the same paths; the suffix :ro makes a mount read-only.',
        ),
      ),
      AllowRoot: flag(false, 'Lets a Hub that runs as root use a rootful engine.'),
    }),
    {},
  ),
  Pod: v.optional(
    v.object({
      Kubeconfig: text('', 'Experimental. Kubeconfig file of the cluster; empty: `KUBECONFIG`, else `~/.kube/config`.'),
      Context: text('', 'Context in the kubeconfig file; empty: its current context.'),
      Namespace: text('', 'Namespace of the pods; empty: the namespace of the context.'),
      Image: text('oratorio:dev', 'Image with Oratorio, git and a shell.'),
      Command: v.pipe(
        v.optional(v.array(v.string(), 'a list of texts'), ['node', '/app/dist/appserver/main.cjs']),
        v.description('Program and first arguments of an agent server in the image.'),
      ),
      Volumes: v.pipe(
        v.optional(v.array(v.string(podVolume), 'a list of volumes'), []),
        v.description(
          'Volumes of the cluster that this machine has mounted at the same paths: `<path>=claim:<name>` or `<path>=hostPath:<path>`. They must hold the workspace and the home of Oratorio.',
        ),
      ),
      MemoryMiB: whole(4_096, 0, 16_777_216, 'Memory limit of the pod in MiB; 0: no limit.'),
      Cpus: whole(0, 0, 1_024, 'Processor limit of the pod; 0: no limit.'),
      PullImages: flag(false, 'Lets the nodes pull the image.'),
      AllowRoot: flag(false, 'Lets a Hub that runs as root start pods as root.'),
    }),
    {},
  ),
});

export const Config = v.object({
  ...modelSettings,
  SystemPrompt: text('', 'Added to the system prompt of every thread.'),
  EnabledTools: v.pipe(
    v.optional(v.array(ToolName, 'a list of tool names'), []),
    v.description('Enabled tools of every face, MCP tools as mcp__<server>__<tool>; empty enables all.'),
  ),
  MaxToolCallRounds: whole(100, 1, 10_000, 'Requests to the model in one turn.'),
  MaxSessionQueueSize: whole(20, 0, 10_000, 'Inputs that wait in one thread; 0 means no queue.'),
  StreamUpstream: flag(true, 'Asks the upstream for a stream; false for those that lose tool calls in streams.'),
  UpstreamIdleMs: duration(defaults.upstream.idleMs, 100, 'An upstream that is silent for this long has failed.'),
  UpstreamRetries: whole(
    defaults.upstream.retries,
    0,
    20,
    'Repetitions of a request after a 429, a 5xx, a broken connection or a broken answer.',
  ),
  Compaction: v.optional(Compaction, {}),
  Tools: v.optional(Tools, {}),
  SubAgent: v.optional(SubAgent, {}),
  Permissions: v.optional(Permissions, {}),
  Quota: v.optional(Quota, {}),
  Turns: v.optional(Turns, {}),
  Agent: v.optional(Agent, {}),
  Hooks: v.optional(HookSettings, {}),
  McpServers: v.pipe(
    v.optional(v.record(McpServerName, McpServerSettings), {}),
    v.description('Servers of the Model Context Protocol by name.'),
  ),
  Api: v.optional(Api, {}),
  DashBoard: v.optional(DashBoard, {}),
  AgUi: v.optional(AgUi, {}),
  Automations: v.optional(Automations, {}),
  Tracing: v.optional(Tracing, {}),
  Checkpoints: v.optional(Checkpoints, {}),
  Telemetry: v.optional(Telemetry, {}),
  Notifications: v.optional(Notifications, {}),
  Hub: v.optional(Hub, {}),
  Hosts: v.pipe(
    v.optional(
      v.pipe(
        v.record(HostName, Host),
        v.check((hosts) => Object.keys(hosts).length <= maxHosts, `at most ${maxHosts} hosts`),
      ),
      {},
    ),
    v.description('Other machines with their own Hub, by name; see `oratorio hosts`.'),
  ),
  AppServer: v.optional(v.object({ WebSocket: v.optional(WebSocketListener, {}) }), {}),
  Supervision: v.optional(Supervision, {}),
  Place: v.optional(Place, {}),
});
export type Config = v.InferOutput<typeof Config>;

/** Key paths whose values are never repeated in a message. */
export const secretKeyPaths: ReadonlySet<string> = new Set([
  'ApiKey',
  'Proxy',
  'Api.ApiKey',
  'AgUi.ApiKey',
  'DashBoard.Password',
  'AppServer.WebSocket.Token',
  'Tools.Web.SearchApiKey',
  'Notifications.Ntfy.Token',
]);
