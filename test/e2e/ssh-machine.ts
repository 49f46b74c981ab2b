/**
 * A second machine on loopback: an `sshd` that the test starts as this user, with its own host key and user key, and a home with
 * its own Hub. Ending `sshd` and its sessions cuts the connection.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { eventually, killIfThere } from '../hub/harness.ts';
import { unusedPort } from '../ports.ts';
import { command, makePlace, type Place, processesUnder, type Teardown } from './harness.ts';

const sshd = ['/usr/sbin/sshd', '/usr/local/sbin/sshd'].find((path) => existsSync(path));
const ssh = ['/usr/bin/ssh', '/usr/local/bin/ssh'].find((path) => existsSync(path));

const sessionVariables = ['HOME', 'XDG_CACHE_HOME', 'TMPDIR', 'ORATORIO_HOME', 'ORATORIO_LOG'];

/** Two machines: the local machine, and the machine behind `ssh://box`. */
export interface Machines {
  readonly here: Place;
  readonly there: Place;
  /** Command on the second machine, for `--program`. */
  readonly program: string;
  /** File with the host keys that `ssh` accepts. */
  readonly knownHosts: string;
  readonly authorizedKeys: string;
  /** Ends `sshd` and every session. */
  cut(): Promise<void>;
  /** Starts `sshd` again on the same port. */
  mend(): Promise<void>;
  /** Processes of `ssh` of this user's Hub. */
  sshProcesses(): number[];
  /** Whether the second machine has a network of its own, which needs root. Then `cutLine` drops packets without a reset. */
  readonly isApart: boolean;
  /** Cuts the line, and leaves the processes of both ends. Without a network of its own: `cut`. */
  cutLine(): Promise<void>;
  mendLine(): Promise<void>;
  /** Runs a script of Node on the second machine. */
  runThere(script: string): void;
  /** Writes the program of the second machine. @param script lines of a shell script; default: the product */
  install(script?: string): void;
}

function script(path: string, lines: string): void {
  writeFileSync(path, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
}

const quotedWords = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}='${value}'`)
    .join(' ');

/** Network of the second machine, joined to this one by two virtual interfaces; null for a user who may not create one. */
function makeLine(t: Teardown) {
  if (process.getuid?.() !== 0) return null;
  const id = randomBytes(3).toString('hex');
  const [name, near, far] = [`oratorio-${id}`, `ora${id}a`, `ora${id}b`];
  const net = `10.${99 + (process.pid % 100)}.${Number.parseInt(id.slice(0, 2), 16)}`;
  const ip = (...args: readonly string[]) => execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  ip('netns', 'add', name);
  // The interface inside goes with its network, and its other end with it.
  t.teardown(() => ip('netns', 'delete', name));
  ip('link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', name);
  ip('address', 'add', `${net}.1/24`, 'dev', near);
  ip('link', 'set', near, 'up');
  for (const args of [
    ['address', 'add', `${net}.2/24`, 'dev', far],
    ['link', 'set', far, 'up'],
    ['link', 'set', 'lo', 'up'],
  ])
    ip('-n', name, ...args);
  return {
    address: `${net}.2`,
    inside: ['ip', 'netns', 'exec', name],
    set: (state: 'up' | 'down') => void ip('link', 'set', near, state),
  };
}

export interface MachineOptions {
  /** The second machine gets a network of its own, where this user may create one. */
  readonly apart?: boolean;
  /** Further variables of the programs on the second machine. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Creates both machines and waits until `sshd` listens. The teardown of the test removes them. */
export async function makeMachines(t: Teardown, { apart = false, env = {} }: MachineOptions = {}): Promise<Machines> {
  if (!sshd || !ssh) throw new Error('sshd or ssh is not installed: apt-get install openssh-server openssh-client');
  const second = makePlace(t, 'oratorio-box-');
  const there: Place = { ...second, env: { ...second.env, ...env } };
  const place = makePlace(t, 'oratorio-me-');
  const { root } = there;
  const port = await unusedPort();
  const line = apart ? makeLine(t) : null;
  const address = line?.address ?? '127.0.0.1';
  for (const name of ['hostkey', 'userkey'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', join(root, name)]);
  const authorizedKeys = join(root, 'authorized_keys');
  const knownHosts = join(root, 'known_hosts');
  writeFileSync(authorizedKeys, readFileSync(join(root, 'userkey.pub')));
  writeFileSync(knownHosts, `[${address}]:${port} ${readFileSync(join(root, 'hostkey.pub'), 'utf8')}`);
  const user = userInfo().username;
  writeFileSync(
    join(root, 'sshd_config'),
    [
      `Port ${port}`,
      `ListenAddress ${address}`,
      `HostKey ${join(root, 'hostkey')}`,
      `PidFile ${join(root, 'sshd.pid')}`,
      `AuthorizedKeysFile ${authorizedKeys}`,
      ...['StrictModes no', 'UsePAM no', 'PasswordAuthentication no', 'KbdInteractiveAuthentication no'],
      ...['PermitRootLogin prohibit-password', 'AllowTcpForwarding yes', 'UseDNS no', 'LogLevel ERROR'],
      // A session never sees the home of the user who runs the test.
      `SetEnv ${sessionVariables.map((name) => `${name}=${there.env[name]}`).join(' ')}`,
    ].join('\n'),
  );
  writeFileSync(
    join(root, 'ssh_config'),
    [
      'Host box',
      ...[`HostName ${address}`, `Port ${port}`, `User ${user}`, `IdentityFile ${join(root, 'userkey')}`],
      ...['IdentitiesOnly yes', 'IdentityAgent none', 'StrictHostKeyChecking yes', 'HostKeyAlgorithms ssh-ed25519'],
      ...[`UserKnownHostsFile ${knownHosts}`, 'GlobalKnownHostsFile /dev/null'],
    ].join('\n'),
  );
  const bin = join(place.root, 'bin');
  mkdirSync(bin);
  // Calls over the control path name another configuration later on the command line, and the last one counts.
  script(join(bin, 'ssh'), `exec ${ssh} -F ${join(root, 'ssh_config')} "$@"`);
  const here: Place = { ...place, env: { ...place.env, PATH: `${bin}:${place.env['PATH'] ?? process.env['PATH']}` } };
  const program = join(root, 'oratorio');
  // Required by an sshd that runs as root.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true });

  const inside = line?.inside ?? [];
  let server: ChildProcess | undefined;
  async function mend(): Promise<void> {
    const [program = '', ...args] = [...inside, sshd ?? '', '-D', '-e', '-f', join(root, 'sshd_config')];
    const child = spawn(program, args, {
      cwd: root,
      env: { PATH: process.env['PATH'] },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    server = child;
    await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`sshd ended with ${child.exitCode}`);
      const socket = connect(port, address);
      const isOpen = await Promise.race([
        once(socket, 'connect').then(() => true),
        once(socket, 'error').then(() => false),
      ]).catch(() => false);
      socket.destroy();
      return isOpen || undefined;
    }, 'sshd listens');
  }

  /** Finds sessions of `sshd`, which rename themselves, e.g. `sshd: me [priv]`. Their parent was the server. */
  function sessions(): number[] {
    const pids = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
      .split('\n')
      .map((line) => line.trim().split(/\s+/));
    const below = (parents: readonly string[]): string[] => {
      const children = pids.filter(([, parent = '', name = '']) => parents.includes(parent) && name.startsWith('sshd'));
      const found = children.map(([pid = '']) => pid);
      return found.length === 0 ? [] : [...found, ...below(found)];
    };
    return below([String(server?.pid ?? -1)]).map(Number);
  }

  async function cut(): Promise<void> {
    const child = server;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    const left = sessions();
    child.kill('SIGKILL');
    for (const pid of left) killIfThere(pid);
    await ended;
  }
  t.teardown(cut);

  const machines: Machines = {
    ...{ here, there, program, knownHosts, authorizedKeys, cut, mend, isApart: line !== null },
    cutLine: async () => (line ? line.set('down') : cut()),
    mendLine: async () => (line ? line.set('up') : mend()),
    runThere(script) {
      const [program = '', ...args] = [...inside, process.execPath, '-e', script];
      execFileSync(program, args, { env: { ...there.env }, stdio: ['ignore', 'ignore', 'inherit'], timeout: 300_000 });
    },
    sshProcesses: () =>
      processesUnder(join(here.home, 'hub'))
        .filter(({ argv }) => argv.includes('-N'))
        .map(({ pid }) => pid),
    install(
      lines = `exec env -i "SSH_CONNECTION=$SSH_CONNECTION" ${quotedWords(there.env)} '${process.execPath}' '${command}' "$@"`,
    ) {
      script(program, lines);
    },
  };
  machines.install();
  await mend();
  return machines;
}
