/** `oratorio hosts add --install`: sends this version of the product to another machine and installs it for the user there. */
import { realpathSync } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { packTar, type TarSource } from 'modern-tar/fs';
import {
  installCommand,
  lastLine,
  platformCommand,
  platformIn,
  problemIn,
  type RemoteEnd,
  receivedWord,
  remoteAddressIn,
  sshFailure,
} from '../hosts/index.ts';
import { packageRoot } from '../lib/index.ts';
import { version } from '../protocol/index.ts';
import type { CommandContext } from './command.ts';
import { canConfirm, confirm } from './confirm.ts';
import { CliError } from './errors.ts';
import { during } from './hub.ts';
import { callSsh } from './remote-check.ts';
import {
  addressOption,
  checksumIn,
  downloadReleaseFile,
  type Found,
  findRelease,
  releaseAddress,
  releasedAddress,
  tarballBytes,
} from './update/index.ts';

const script = 'install.sh';
const scriptBytes = 1_000_000;
/** Time limit for sending the tarball and starting the new version. */
const installMs = 30 * 60_000;

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;

const stopped = (message: string, hint: string, code: string): CliError =>
  new CliError('precondition', message, hint, code);

/**
 * Installs this version on a machine, in the home of its user, without root. Asks first. The machine verifies the checksum, removes
 * everything after a failure, and keeps an earlier installation.
 *
 * @throws CliError when nothing was installed; HostFailure of `ssh`
 */
export async function installOnHost(context: CommandContext, ssh: string): Promise<void> {
  const { signal } = context;
  const directory = releaseAddress(addressOption(context) ?? releasedAddress(version), 'hosts add');
  const platform = await during(context, `Asking ${ssh} for its platform`, () => platformOf(context, ssh));
  const found = await findRelease(directory, realpathSync(packageRoot()), signal, platform);
  const sum = checksumIn(found.sums.toString(), script);
  if (found.version !== version || sum === undefined) {
    const problem =
      sum === undefined ? `has no ${script}` : `has Oratorio ${found.version}; this machine runs ${version}`;
    throw stopped(
      `The release ${problem}.`,
      `Nothing was changed. Name the release of ${version}: --from ADDRESS`,
      'wrongRelease',
    );
  }
  await requireConsent(context, ssh, platform);
  const work = await mkdtemp(join(tmpdir(), 'oratorio-install-'));
  try {
    const { name } = found;
    await during(context, `Reading ${name}`, async () => {
      await download({ directory, name: script, limit: scriptBytes, signal }, work, sum);
      await download({ directory, name, limit: tarballBytes, signal }, work, found.sha256);
    });
    await send(context, ssh, work, found);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function platformOf(context: CommandContext, ssh: string): Promise<string> {
  const { exitCode, stdout, stderr } = await callSsh(context, { ssh, command: platformCommand });
  if (exitCode === 255) throw sshFailure(stderr);
  const platform = platformIn(stdout);
  if (platform !== undefined) return platform;
  const found = lastLine(stdout) || lastLine(stderr) || 'unknown';
  throw stopped(
    `No release of Oratorio runs on ${ssh}. Its system is: ${found}.`,
    'Install Oratorio there by hand.',
    'wrongPlatform',
  );
}

/** @throws CliError without the user's consent */
async function requireConsent(
  { options, output, signal }: CommandContext,
  ssh: string,
  platform: string,
): Promise<void> {
  if (options['yes'] === true) return;
  const question = `Install Oratorio ${version} (${platform}) on ${ssh}, in ~/.local of that user?`;
  if (canConfirm() && (await confirm(output, question, signal))) return;
  throw stopped(
    `Oratorio was not installed on ${ssh}: you did not agree.`,
    'To install without a question, add --yes.',
    'notAgreed',
  );
}

/** @throws CliError for a file with another checksum */
async function download(file: Parameters<typeof downloadReleaseFile>[0], work: string, sha256: string): Promise<void> {
  const sum = await downloadReleaseFile(file, join(work, file.name));
  if (sum === sha256) return;
  throw new CliError(
    'failure',
    `${file.name} does not match the checksum of the release.`,
    'Nothing was changed. Try again, or name another copy of the release: --from ADDRESS',
    'wrongChecksum',
  );
}

/** Sends the files and waits until the Hub of the new version runs. */
async function send(context: CommandContext, ssh: string, work: string, found: Found): Promise<void> {
  const { size } = await stat(join(work, found.name));
  const progress = context.output.progress(`Sending ${found.name}`);
  let isReceived = false;
  try {
    const end = await callSsh(context, {
      ...{ ssh, command: installCommand, timeoutMs: installMs },
      stdin: archive(work, found, (bytes) =>
        progress.text(
          `Sending ${found.name}: ${Math.min(100, Math.floor((100 * bytes) / size))} % of ${megabytes(size)}`,
        ),
      ),
      onOutput: (stdout) => {
        if (isReceived || !stdout.includes(receivedWord)) return;
        isReceived = true;
        progress.text(`Installing Oratorio ${version} on ${ssh}`);
      },
    });
    if (end.exitCode === 0) remoteAddressIn(end);
    else throw notInstalled(ssh, end);
  } finally {
    progress.stop();
  }
}

function notInstalled(ssh: string, { exitCode, stderr }: RemoteEnd): CliError {
  // Exit code of ssh itself. The machine completes an installation that has received every file.
  const isCut = exitCode === 255;
  const problem = isCut ? sshFailure(stderr).message : problemIn(stderr) || 'The machine gave no reason.';
  return new CliError(
    'failure',
    isCut
      ? `The connection to ${ssh} ended during the installation: ${problem.replace(/\.?$/, '.')}`
      : `Oratorio was not installed on ${ssh}: ${problem.replace(/\.?$/, '.')}`,
    isCut
      ? 'The machine removes all new files, or completes the installation. Run the command again.'
      : 'The machine has removed all new files. Correct the problem, then run the command again.',
    'installFailed',
  );
}

/** Tar archive for `installCommand`. @param onSent called with the number of bytes so far */
function archive(work: string, { name, sums, signature }: Found, onSent: (bytes: number) => void): Readable {
  const text = (target: string, content: Buffer): TarSource => ({ type: 'content', content, target, mode: 0o600 });
  let sent = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      sent += chunk.length;
      onSent(sent);
      done(null, chunk);
    },
  });
  return packTar([
    text('SHA256SUMS', sums),
    ...(signature === null ? [] : [text('SHA256SUMS.minisig', signature)]),
    ...[script, name].map((file): TarSource => ({ type: 'file', source: join(work, file), target: file })),
  ]).pipe(counted);
}
