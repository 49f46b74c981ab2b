import { resolve } from 'node:path';
import { changedFiles, filesOfServer, type NamedFiles, startedFileRemedy } from '../config/index.ts';
import { visible } from '../lib/index.ts';
import { defaults, type McpServerSettings } from '../protocol/index.ts';
import { childEnvironment, markerVariable } from '../supervise/index.ts';
import { McpFailure } from './failure.ts';
import { openHttpLink } from './http-link.ts';
import type { Library } from './library.ts';
import type { Link } from './link.ts';
import type { ListReview } from './list-review.ts';
import type { LoginSession } from './oauth/index.ts';
import { openStdioLink } from './stdio-link.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface LinkOptions {
  readonly settings: McpServerSettings;
  readonly workspacePath: string;
  readonly env: Environment;
  /** Files of the workspace that the server's command names, with their contents when its settings were read. */
  readonly files: NamedFiles;
  /** Log-in of the user; undefined for a server that has another credential or none. */
  readonly session?: LoginSession | undefined;
}

/** Starts the process of a server, or prepares requests to its address. @throws McpFailure */
export async function openLink(
  library: Library,
  lists: ListReview,
  { settings, env, workspacePath, files, session }: LinkOptions,
): Promise<Link> {
  if (settings.transport === 'streamableHttp') {
    const makeTransport = (...args: ConstructorParameters<Library['StreamableHTTPClientTransport']>) =>
      new library.StreamableHTTPClientTransport(...args);
    return openHttpLink(settings, env, { makeTransport, lists, session });
  }
  const { command, args, cwd, envVars } = settings;
  const [changed] = changedFiles(files, filesOfServer(settings, workspacePath));
  if (changed !== undefined) {
    const what = `${visible(changed)} of the workspace has changed since the agent server started`;
    throw new McpFailure('notStarted', `It was not started, because ${what}. ${startedFileRemedy}`, {
      isRetryable: false,
    });
  }
  return openStdioLink(
    {
      command,
      args,
      cwd: resolve(workspacePath, cwd ?? '.'),
      env: childEnvironment(env, { pass: envVars, add: settings.env }),
      parentMarker: env[markerVariable],
    },
    { parser: new library.ReadBuffer({ maxBufferSize: 2 * defaults.mcp.messageBytes }), lists },
  );
}
