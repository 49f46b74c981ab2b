/** MCP servers as clients see and change them. */
import * as v from 'valibot';

const name = v.pipe(v.string('a name'), v.regex(/^[a-zA-Z0-9_-]{1,64}$/, '1 to 64 letters, digits, _ or -'));
const texts = v.record(v.string(), v.string());
const seconds = v.pipe(v.number(), v.minValue(1), v.maxValue(3600));

const common = {
  enabled: v.optional(v.boolean(), true),
  startupTimeoutSec: v.optional(seconds, 30),
  toolTimeoutSec: v.optional(seconds, 120),
  /** Every call needs approval; false where the server's annotations say `readOnlyHint`, or by the user's word. */
  trusted: v.optional(v.boolean(), false),
};

/** Scope of OAuth (RFC 6749, section 3.3). */
const scope = v.pipe(v.string(), v.regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/, 'a scope without spaces'));

/** OAuth log-in of a server. Without this setting, a log-in uses the scopes that the server names. */
export const McpServerAuth = v.object({
  type: v.literal('oauth'),
  /** Client that is registered at the authorization server, or the address of a client metadata document. */
  clientId: v.optional(v.pipe(v.string(), v.nonEmpty(), v.maxLength(2_000))),
  scopes: v.optional(v.pipe(v.array(scope), v.maxLength(100))),
});
export type McpServerAuth = v.InferOutput<typeof McpServerAuth>;

/** One MCP server without its name: `command` makes it a process (stdio), `url` a streamable HTTP endpoint. */
export const McpServerSettings = v.variant(
  'transport',
  [
    v.object({
      ...common,
      transport: v.literal('stdio'),
      command: v.pipe(v.string(), v.nonEmpty()),
      args: v.optional(v.array(v.string()), []),
      env: v.optional(texts, {}),
      /** Names of our environment variables that it gets besides the usual ones. */
      envVars: v.optional(v.array(v.string()), []),
      cwd: v.optional(v.string()),
    }),
    v.object({
      ...common,
      transport: v.literal('streamableHttp'),
      url: v.pipe(v.string(), v.url()),
      /** Name of the environment variable that holds the bearer token. */
      bearerTokenEnvVar: v.optional(v.string()),
      httpHeaders: v.optional(texts, {}),
      /** Header name to name of an environment variable. */
      envHttpHeaders: v.optional(texts, {}),
      auth: v.optional(McpServerAuth),
    }),
  ],
  '"stdio" with a command, or "streamableHttp" with a url',
);
export type McpServerSettings = v.InferOutput<typeof McpServerSettings>;

export const McpServerName = name;
/** Header values and environment values are answered as `"…"`: they may hold secrets. */
export const McpServerConfig = v.object({ name, settings: McpServerSettings, readOnly: v.boolean() });
export type McpServerConfig = v.InferOutput<typeof McpServerConfig>;

/** Problem of a tool, in a sentence that names the field. */
export const McpToolProblem = v.object({ tool: v.string(), problem: v.string(), isOffered: v.boolean() });
export type McpToolProblem = v.InferOutput<typeof McpToolProblem>;

/** The problem of a tool in one sentence. */
export const mcpToolProblemWords = ({ tool, problem, isOffered }: McpToolProblem): string =>
  tool === '' ? problem : `tool ${tool} is ${isOffered ? 'offered in part' : 'left out'}: ${problem}`;

export const mcpStartupStates = [
  'disabled',
  'starting',
  'ready',
  'needsLogin',
  'failed',
  'restarting',
  'stopped',
] as const;

export const McpServerStatus = v.object({
  name,
  enabled: v.boolean(),
  startupState: v.picklist(mcpStartupStates),
  toolCount: v.number(),
  /** Tools that are left out, or offered without a part of their definition; an empty name stands for the list. */
  toolProblems: v.optional(v.array(McpToolProblem)),
  resourceCount: v.number(),
  resourceTemplateCount: v.number(),
  lastError: v.nullable(v.string()),
  transport: v.picklist(['stdio', 'streamableHttp']),
  serverName: v.optional(v.string()),
  serverVersion: v.optional(v.string()),
  /** Negotiated version of the Model Context Protocol. */
  protocolVersion: v.optional(v.string()),
});
export type McpServerStatus = v.InferOutput<typeof McpServerStatus>;

export const McpTestResult = v.union([
  v.object({ success: v.literal(true), toolCount: v.number(), tools: v.array(v.string()) }),
  v.object({ success: v.literal(false), errorCode: v.string(), errorMessage: v.string() }),
]);
export type McpTestResult = v.InferOutput<typeof McpTestResult>;
