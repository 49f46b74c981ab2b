import { connectHub, type HubClient, type ReceivedEvent, type RecordAnswer } from '../../client/index.ts';
import { workspaceTrust } from '../../config/index.ts';
import { type EnsureInput, version } from '../../protocol/index.ts';
import { knownPageToken } from '../../supervise/index.ts';
import { agentNamed, chooseAgent } from '../choose-agent.ts';
import type { CommandContext } from '../command.ts';
import { canConfirm, confirm } from '../confirm.ts';
import { CliError, quoted, usageError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { type Fork, forkState, forksByWorkspace } from '../forks.ts';
import { clientInfo, during, withHub } from '../hub.ts';
import { pageFor, pageUrl } from '../page.ts';
import { isElsewhere, placeOption } from '../place-options.ts';
import { hostNamed } from '../remote.ts';
import { eventLine, inLine, recordLines } from '../render.ts';
import { warnRestricted } from '../restricted.ts';
import { canonical, isWorkspace, type RemoteWorkspace, remoteWorkspace, workspacePath } from '../workspace.ts';
import { initialise, newAndRestricted } from './init.ts';

/** `oratorio up [workspace]` */
export async function run(context: CommandContext): Promise<number> {
  const { output, options } = context;
  const remote = remoteWorkspace(context.argument);
  if (remote) return upOnHost(context, remote);
  const path = workspacePath(context, context.argument);
  const name = typeof options['agent'] === 'string' ? options['agent'] : undefined;
  const agent = name === undefined ? undefined : await agentNamed(context, name);
  const place = placeOption(context, 'up');
  await makeWorkspace(context, path);
  if (name !== undefined) chooseAgent(context, path, agent);
  const found = await findHub(context);
  const isFollowing = !output.json && (options['follow'] ?? output.isTTY) === true;
  const watch = new Watch(context, found, canonical(path));
  await watch.opened;
  try {
    const { record, hub } = await ensure(context, path, place);
    warnRestricted(output, record);
    if (place && isElsewhere(record, place)) output.warn(keepsPlace(path));
    await watch.settled();
    const forks = (await forksByWorkspace(hub, context.signal)).get(record.canonicalWorkspacePath) ?? [];
    if (output.json) {
      output.document({ ...record, forks });
      return exitCodes.ok.code;
    }
    printReady(context, record, hub, forks);
    if (!isFollowing) return exitCodes.ok.code;
    output.line(output.colors.dim('  Following events. Ctrl-C ends only this view: everything keeps running.'));
    output.line();
    await watch.ended;
    output.line();
    output.line(
      context.signal.aborted
        ? `Left running. To stop: oratorio stop ${quoted(path)}, or oratorio hub stop`
        : 'The Hub has stopped.',
    );
    return exitCodes.ok.code;
  } finally {
    watch.close();
  }
}

const keepsPlace = (path: string): string =>
  `The agent server already runs, and keeps its place until its next start. To move it now: oratorio restart ${quoted(path)}`;

/** Starts a workspace of another machine through the Hub of that machine. */
async function upOnHost(context: CommandContext, { host, path }: RemoteWorkspace): Promise<number> {
  const { output, options, signal } = context;
  const { init, agent, in: place, image, network } = options;
  if (init === true || [agent, place, image, network].some((value) => value !== undefined))
    throw usageError(
      '--init, --agent, --in, --image and --network work only for workspaces of this machine. Run the command on the host over ssh.',
      'up',
    );
  return withHub(context, async ({ hub }) => {
    await hostNamed(hub, host, context);
    const record = await during(context, `Starting the agent server on ${host}`, () =>
      hub.onHost(host, 'ensure', path, { signal }),
    );
    if (output.json) output.document(record);
    else {
      for (const line of recordLines(record, output.colors)) output.line(line);
      output.line(`  ${output.colors.dim('talk to it ')}  oratorio chat --workspace ${quoted(`${host}:${path}`)}`);
    }
    return exitCodes.ok.code;
  });
}

/** Makes a directory a workspace only with its owner's consent: `--init`, or an answer on a terminal. */
async function makeWorkspace({ options, output, env, home, signal }: CommandContext, path: string): Promise<void> {
  if (isWorkspace(path, home)) return;
  const canAsk = output.isTTY && !output.json && canConfirm();
  const question = `${path} is not a workspace. Make it one?`;
  const isWanted = options['init'] === true || (canAsk && (await confirm(output, question, signal)));
  if (!isWanted) {
    throw new CliError(
      'workspaceNotFound',
      `${path} is not a workspace.`,
      `To make it one: oratorio up ${quoted(path)} --init`,
      'workspaceNotFound',
    );
  }
  const { workspacePath: made } = await initialise(path, env);
  const { trust } = workspaceTrust({ home, workspace: made });
  output.line(`${output.colors.green('✔')} Made ${made} a workspace`);
  if (trust === 'restricted') output.warn(`${made} is ${newAndRestricted(made)}`);
}

async function findHub({ home, options, output, signal }: CommandContext): Promise<HubClient> {
  const { green, dim } = output.colors;
  const progress = output.progress('Looking for the Hub');
  try {
    const { hub, lock, started } = await connectHub({
      home,
      signal,
      autoStart: options['start'] !== false,
      onProgress: (event) => {
        if (event.kind === 'starting') progress.text('Starting the Hub');
      },
    });
    output.line(
      `${green('✔')} Hub ${started ? 'started' : 'found'}  ${lock.apiBaseUrl}  ${dim(`process ${lock.pid}`)}`,
    );
    if (lock.version !== version) {
      output.warn(
        `The Hub is version ${lock.version}, this is ${version}. To change it: oratorio hub stop --detach, then up again.`,
      );
    }
    return hub;
  } finally {
    progress.stop();
  }
}

/** @returns the record, and the Hub that returned it: the first Hub may have died in the meantime */
function ensure(
  context: CommandContext,
  path: string,
  place: EnsureInput['place'],
): Promise<{ record: RecordAnswer; hub: HubClient }> {
  return withHub(
    context,
    ({ hub }) =>
      during(context, 'Starting the agent server', async () => ({
        record: await hub.ensure(
          { workspacePath: path, client: clientInfo, ...(place && { place }) },
          { signal: context.signal },
        ),
        hub,
      })),
    true,
  );
}

function printReady(context: CommandContext, record: RecordAnswer, hub: HubClient, forks: readonly Fork[]): void {
  const { output } = context;
  const { colors } = output;
  const { apiBaseUrl } = hub.address;
  output.line();
  for (const line of recordLines(record, colors)) output.line(line);
  for (const fork of forks.slice(0, maxForks)) {
    output.line(`  └ ${inLine(fork.name)}  ${colors.dim(`${inLine(forkState(fork))}, ${inLine(fork.directory)}`)}`);
  }
  if (forks.length > maxForks) output.line(colors.dim(`  └ ${forks.length - maxForks} more: oratorio list`));
  output.line();
  output.line(`  ${colors.dim('statecharts')}  ${pageUrl(apiBaseUrl)}  ${colors.dim('(open with: oratorio inspect)')}`);
  if (record.page !== null) {
    const page = pageFor(context, new URL(record.page, apiBaseUrl).href, knownPageToken(context.home));
    output.line(`  ${colors.dim('page       ')}  ${page}`);
  }
  const workspace = quoted(record.canonicalWorkspacePath);
  output.line(`  ${colors.dim('talk to it ')}  oratorio chat --workspace ${workspace}`);
  output.line(
    `  ${colors.dim('end it     ')}  oratorio stop ${workspace}  ${colors.dim('(everything: oratorio hub stop)')}`,
  );
  output.line();
}

const settleMs = 500;
/** Most forks that are listed by name. */
const maxForks = 20;

/** Prints the events of one workspace, and of the Hub, from before its server is started. */
class Watch {
  /** Resolves when the stream is open, so that no later event is missed, or when it cannot be opened. */
  readonly opened: Promise<void>;
  readonly ended: Promise<void>;
  readonly #leave = new AbortController();
  /** Whether a start has begun whose end event has not arrived yet. */
  #isStarting = false;
  #wake: () => void = () => undefined;

  constructor(context: CommandContext, hub: HubClient, path: string) {
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    this.ended = this.#print(context, hub, path, open);
    this.opened = Promise.race([opened, this.ended]);
    // `ended` rejects for its readers; without one the rejection must not end the process.
    this.ended.catch(() => undefined);
  }

  close(): void {
    this.#leave.abort();
  }

  /** Lets the event of the answered request arrive first, so that lines are in order. */
  async settled(): Promise<void> {
    if (!this.#isStarting) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, settleMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #print({ output, signal }: CommandContext, hub: HubClient, path: string, onOpen: () => void): Promise<void> {
    const events = hub.events({
      signal: AbortSignal.any([signal, this.#leave.signal]),
      onOpen,
      onLost: (reason) => output.warn(`The event stream broke (${reason}); it is being resumed.`),
    });
    for await (const event of events) {
      if (!concerns(event, path)) continue;
      output.line(eventLine(event, output.colors, { showWorkspace: false }));
      if (!event.kind.startsWith('appserver.')) continue;
      this.#isStarting = event.kind === 'appserver.starting';
      if (!this.#isStarting) this.#wake();
    }
  }
}

const concerns = (event: ReceivedEvent, path: string): boolean =>
  event.workspacePath === null || event.workspacePath === path;
