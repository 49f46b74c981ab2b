import * as v from 'valibot';
import { defaults } from '../protocol/index.ts';

const { supervise } = defaults;

const flag = (value: boolean, description: string) =>
  v.pipe(v.optional(v.boolean('true or false'), value), v.description(description));
const text = (value: string, description: string) =>
  v.pipe(v.optional(v.string('a string'), value), v.description(description));

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

/** Whether only this machine can reach a listener on `host`. */
export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i.test(host);
}

function isHttpUrl(value: string): boolean {
  return URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

const hostName = (value: string, description: string) =>
  v.pipe(
    v.optional(v.pipe(v.string('a host name or address'), v.trim(), v.nonEmpty('a host name or address')), value),
    v.description(description),
  );

const loopbackOnly = 'a loopback address (127.0.0.1, ::1 or localhost)';
const urlOrEmpty = 'an http or https URL, or an empty string';

/** Tools as users write them (DESIGN §6). */
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
const canonicalTools = new Map(toolNames.map((name) => [name.toLowerCase(), name]));
const knownTool = `one of ${toolNames.join(', ')}`;
const ToolName = v.pipe(
  v.string(knownTool),
  v.check((name) => canonicalTools.has(name.toLowerCase()), knownTool),
  v.transform((name) => canonicalTools.get(name.toLowerCase()) ?? name),
);

const variableName = 'a name of an environment variable';

const Api = v.object({
  Enabled: flag(false, 'Serves the chat-completions API.'),
  Host: hostName('127.0.0.1', 'Listen address.'),
  Port: port(8080, 'Listen port. A managed agent server takes its port from the Hub instead.'),
  ApiKey: text('', 'Bearer key of the API; empty disables authentication.'),
  AutoApprove: flag(true, 'Approves operations that need approval; false rejects them.'),
  EnabledTools: v.pipe(
    v.optional(v.array(ToolName, 'a list of tool names'), []),
    v.description('Enabled tools; empty enables all.'),
  ),
});

const DashBoard = v.pipe(
  v.object({
    Enabled: v.pipe(
      v.optional(v.boolean('true or false')),
      v.description('Serves the dashboard. Default: true when Host is loopback.'),
    ),
    Host: hostName('127.0.0.1', 'Listen address.'),
    Port: port(8080, 'Listen port. A managed agent server takes its port from the Hub instead.'),
  }),
  v.transform((settings) => ({ ...settings, Enabled: settings.Enabled ?? isLoopback(settings.Host) })),
);

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
});

const Hub = v.object({
  Host: v.pipe(
    v.optional(v.pipe(v.string(loopbackOnly), v.trim(), v.check(isLoopback, loopbackOnly)), '127.0.0.1'),
    v.description('Listen address of the Hub: loopback only.'),
  ),
  Port: port(0, 'Listen port of the Hub; 0 takes a free one.'),
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
  ProbeIntervalMs: duration(supervise.probeIntervalMs, 100, 'Time between two liveness probes.'),
  ProbeTimeoutMs: duration(supervise.probeTimeoutMs, 50, 'A probe without an answer after this time has failed.'),
  LivenessFailures: whole(supervise.livenessFailures, 1, 1000, 'Failed probes in a row that make a server unhealthy.'),
  UnhealthyGraceMs: duration(
    supervise.unhealthyGraceMs,
    0,
    'How long an unhealthy server may recover before it is restarted.',
  ),
  StartDeadlineMs: duration(supervise.startDeadlineMs, 100, 'A server that is not ready after this time is ended.'),
  IdleStopMinutes: whole(0, 0, 35_791, 'A server without work for this long is stopped; 0 means never.'),
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
 * The whole configuration (specification §2.1, DESIGN §1 and §3). Messages complete the sentence "… must be …". Keys are
 * matched without case before this schema sees them; keys it does not name are warned about and dropped.
 */
export const Config = v.object({
  ApiKey: text('', 'Key of the upstream model provider.'),
  Model: text('', 'Name of the model.'),
  EndPoint: v.pipe(
    v.optional(
      v.pipe(
        v.string(urlOrEmpty),
        v.trim(),
        v.check((value) => value === '' || isHttpUrl(value), urlOrEmpty),
      ),
      '',
    ),
    v.description('Base URL of the upstream model provider, e.g. https://api.openai.com/v1.'),
  ),
  Api: v.optional(Api, {}),
  DashBoard: v.optional(DashBoard, {}),
  AgUi: v.optional(AgUi, {}),
  Hub: v.optional(Hub, {}),
  AppServer: v.optional(v.object({ WebSocket: v.optional(WebSocketListener, {}) }), {}),
  Supervision: v.optional(Supervision, {}),
});
export type Config = v.InferOutput<typeof Config>;

/** Key paths whose values are never repeated in a message. */
export const secretKeyPaths: ReadonlySet<string> = new Set(['ApiKey', 'Api.ApiKey', 'AppServer.WebSocket.Token']);
