/** `oratorio backend --demo`: agent server, stand-in for GitHub and review backend in this process, in a directory that ends with it. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startAppServer } from '../appserver/index.ts';
import { initWorkspace } from '../config/index.ts';
import { ensurePrivateDirectory } from '../lib/index.ts';
import { createLogger, levelOf } from '../log/index.ts';
import { type Backend, makeDemoRepository, removeDemo, startDemo } from '../review/index.ts';
import type { CommandContext } from './command.ts';

/** A running demo. */
export interface RunningDemo {
  readonly backend: Backend;
  /** The pull request at the stand-in, and its title. */
  readonly pullUrl: string;
  readonly title: string;
  /** Home of this demo, for the file that opens the page. */
  readonly home: string;
  /** Ends everything and removes the directory. */
  close(): Promise<void>;
}

/** Environment of the demo, without our variables: settings, keys and homes of the user do not apply to it. */
const withoutOurs = (env: CommandContext['env']) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^oratorio_/i.test(name)));

/** Starts the demo on `port`; 0: any free one. */
export async function startReviewDemo(context: CommandContext, port: number): Promise<RunningDemo> {
  const directory = await mkdtemp(join(tmpdir(), 'oratorio-demo-'));
  const ends: (() => Promise<void>)[] = [() => removeDemo(directory)];
  const close = async () => {
    for (const end of ends.reverse()) await end();
  };
  try {
    const home = join(directory, 'home');
    const env = { ...withoutOurs(context.env), ORATORIO_HOME: home };
    // A newcomer watches the page, and needs only warnings here.
    const level = context.env['ORATORIO_LOG'] ? levelOf(context.env) : 'warn';
    const logger = createLogger({ name: 'demo', level });
    const repository = await makeDemoRepository(directory);
    ensurePrivateDirectory(home);
    initWorkspace(repository.checkout, env);
    const permissions = { WorktreeRoot: join(directory, 'worktrees') };
    await writeFile(
      join(home, 'config.json'),
      JSON.stringify({ Provider: 'demo', DashBoard: { Port: 0 }, Permissions: permissions }),
      {
        mode: 0o600,
      },
    );
    const agentServer = await startAppServer({
      workspacePath: repository.checkout,
      env,
      logger,
      listen: { host: '127.0.0.1', port: 0 },
    });
    ends.push(() => agentServer.close());
    const agentServerUrl = agentServer.webSocketUrl;
    const demo = await startDemo({ directory, repository, agentServerUrl, port, env, logger });
    ends.push(() => demo.close());
    const { backend, pullUrl, title } = demo;
    return { backend, pullUrl, title, home, close };
  } catch (error) {
    await close();
    throw error;
  }
}
