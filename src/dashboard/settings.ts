import { AgentError } from '../agent/index.ts';
import {
  ConfigChangeError,
  ConfigError,
  type ConfigSource,
  planChange,
  settingsJsonSchema,
  showConfig,
  trustWorkspace,
  workspaceSource,
  workspaceTrust,
} from '../config/index.ts';
import { HttpError, json, type Reply, type RequestContext } from '../http/index.ts';
import { ConfigChange, type ConfigView, rpcMethods } from '../protocol/index.ts';
import { writeFileAtomic } from '../supervise/index.ts';
import type { Caller } from './access.ts';
import type { DashboardOptions } from './options.ts';

const LoginRequest = rpcMethods['mcp/login'].params;

let schema: Promise<unknown> | undefined;

/** `GET /dashboard/api/config/schema`: made from the schema that the configuration is checked with. */
export async function configSchema(): Promise<Reply> {
  schema ??= settingsJsonSchema();
  return json(200, await schema);
}

/** Reads the files, and changes the workspace's own. A running server retains the settings of its start. */
export function settings({ config, readOnly, logger, logIn }: DashboardOptions) {
  /** `GET /dashboard/api/config`. */
  function show(): Reply {
    const { problem, warnings, effective, workspace, user, places, ...place } = showConfig(config);
    const reason = readOnly ?? problem;
    const view: ConfigView = {
      ...place,
      effective: { ...effective },
      workspace: { ...workspace },
      user: { ...user },
      warnings: [...warnings],
      places: { ...places },
      ...(reason !== undefined && { readOnly: reason }),
    };
    return json(200, view);
  }

  /** `PUT /dashboard/api/config`, with the revision that the client has read in `If-Match`. */
  async function change(context: RequestContext<Caller>): Promise<Reply> {
    if (readOnly !== undefined) throw new HttpError(403, 'readOnly', readOnly, null);
    const wanted = context.header('if-match')?.replace(/^(?:W\/)?"(.*)"$/, '$1');
    if (wanted === undefined) {
      throw new HttpError(428, 'revisionRequired', 'Send the revision that you have read in If-Match.', null);
    }
    const { set } = await context.json(ConfigChange);
    // From here to the write in one turn of the event loop: no other change of this process comes in between.
    const source = read();
    if (wanted !== source.revision) {
      const message = 'The file has changed meanwhile: read it again.';
      throw new HttpError(412, 'revisionStale', message, { revision: source.revision });
    }
    const planned = plan(source, set);
    const place = { home: config.home, workspace: config.workspace };
    const { trust } = workspaceTrust(place);
    write(source.file, planned.text);
    // The user has agreed to this change on the page.
    if (trust === 'trusted' && workspaceTrust(place).trust === 'restricted') trustWorkspace(place);
    const keys = Object.keys(set);
    logger.info('settings changed', { keys, by: context.principal, remoteAddress: context.remoteAddress });
    const { revision } = read();
    return json(200, { revision, restartNeededFor: planned.restartNeededFor });
  }

  /** `POST /dashboard/api/mcp/login`. */
  async function startLogin(context: RequestContext<Caller>): Promise<Reply> {
    const { server, redirect } = await context.json(LoginRequest);
    if (!logIn) throw new HttpError(403, 'readOnly', 'This page cannot log in. Use: oratorio mcp login', null);
    try {
      return json(200, { url: await logIn(server, redirect) }, [['cache-control', 'no-store']]);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      const status = error.reason === 'mcpServerNotFound' ? 404 : 409;
      throw new HttpError(status, error.reason, error.detail ?? error.message, null);
    }
  }

  function read(): ConfigSource {
    try {
      return workspaceSource(config.workspace);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw new HttpError(503, 'storageFailed', error.message, null);
    }
  }

  function plan(source: ConfigSource, set: Readonly<Record<string, unknown>>) {
    try {
      return planChange(config, source, set);
    } catch (error) {
      if (error instanceof ConfigChangeError) {
        throw new HttpError(400, 'invalidConfig', error.message, { issues: error.issues });
      }
      if (error instanceof ConfigError) throw new HttpError(503, 'storageFailed', error.message, null);
      throw error;
    }
  }

  function write(file: string, text: string): void {
    try {
      writeFileAtomic(file, text);
    } catch (error) {
      const { code = 'unknown' } = error as NodeJS.ErrnoException;
      throw new HttpError(503, 'storageFailed', `The file cannot be written (${code}).`, { code });
    }
  }

  return { show, change, startLogin };
}
