/** Commands of the programs that stand for `docker` and `docker-compose`: see `index.ts`. */
import { createReadStream, createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import {
  addImage,
  behaviourOf,
  describeContainers,
  findContainer,
  findImage,
  removeContainer,
  removeVolume,
  startContainer,
  volumeAt,
} from './containers.mjs';
import { call, calls, changeState, Failure, readState, record, scenario } from './state.mjs';

const composeVersions = { v2: '2.40.3-3', v1: '1.29.2' };

async function readInput() {
  const chunks = [];
  for await (const chunk of call().input()) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const words = (args, withValue = []) => {
  const plain = [];
  for (let at = 0; at < args.length; at++) {
    if (withValue.includes(args[at])) at++;
    else if (!args[at].startsWith('-')) plain.push(args[at]);
  }
  return plain;
};

function version() {
  const { podman, engineVersion = '28.2.2' } = scenario();
  const server = podman
    ? { Version: '', Components: [{ Name: 'Podman Engine', Version: '5.4.2' }] }
    : { Version: engineVersion, Components: [{ Name: 'Engine', Version: engineVersion }] };
  call().stdout.write(`${JSON.stringify({ Client: { Version: '28.2.2' }, Server: server })}\n`);
}

const unreachable = {
  stopped: 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
  forbidden:
    'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: connect: permission denied',
};

function ps(args) {
  const state = readState();
  const project = args.find((word) => word.startsWith('label=com.docker.compose.project='))?.split('=')[2];
  if (args.includes('--quiet')) {
    const own = state.containers.filter((each) => project === undefined || each.project === project);
    for (const { id } of own) call().stdout.write(`${id}\n`);
    return;
  }
  const running = [...state.containers.filter((each) => each.status === 'running'), ...(scenario().others ?? [])];
  for (const { name, ports } of running) {
    const text = ports
      .map(({ host, hostPort, containerPort }) => `${host}:${hostPort}->${containerPort}/tcp`)
      .join(', ');
    call().stdout.write(`${JSON.stringify({ Names: name, Ports: text })}\n`);
  }
}

function inspect(args) {
  const { described, missing } = describeContainers(words(args, ['--type', '--format']));
  call().stdout.write(`${JSON.stringify(described)}\n`);
  if (missing.length > 0) throw new Failure(missing.map((name) => `Error: No such object: ${name}`).join('\n'));
}

function image([verb, ...args]) {
  if (verb !== 'inspect') throw new Failure(`unknown command: docker image ${verb}`);
  const [name] = words(args, ['--format']);
  const found = findImage(readState(), name);
  if (!found) throw new Failure(`Error response from daemon: No such image: ${name}`);
  const facts = { Id: found.id, RepoTags: [found.reference], RepoDigests: found.digest ? [found.digest] : [] };
  call().stdout.write(`${args.includes('{{.Id}}') ? found.id : JSON.stringify(facts)}\n`);
}

function pull(args) {
  const [name] = words(args);
  const { registry = [] } = scenario();
  if (!registry.includes(name)) {
    throw new Failure(`Error response from daemon: pull access denied for ${name}, repository does not exist`);
  }
  changeState((state) => addImage(state, name, true));
  call().stdout.write(`latest: Pulling from ${name}\nStatus: Downloaded newer image for ${name}\n`);
}

function build(args) {
  const at = args.findIndex((word) => word === '--tag' || word === '-t');
  changeState((state) => addImage(state, args[at + 1], false));
}

async function logs(args) {
  const [name] = words(args, ['--tail', '--since']);
  const { id, service } = findContainer(readState(), name);
  const { log = [`${service} is ready`] } = scenario().services?.[service] ?? {};
  const at = args.indexOf('--tail');
  const tail = at === -1 ? log.length : Number(args[at + 1]);
  // Both streams, as containers do.
  for (const [at, line] of log.slice(-tail).entries()) (at % 2 ? call().stderr : call().stdout).write(`${line}\n`);
  if (args.includes('--follow')) await untilStopped(id);
}

async function untilStopped(own) {
  const { hungUp } = call();
  while (!hungUp.aborted && readState().containers.some(({ id, status }) => id === own && status === 'running')) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function cp([from, to]) {
  const [name, path] = (from === '-' ? to : from).split(':');
  const volume = volumeAt(findContainer(readState(), name), path.replace(/\/\.$/, ''));
  if (from === '-') await pipeline(call().input(), createWriteStream(volume));
  else await pipeline(createReadStream(volume), call().stdout);
}

async function runOnce(args) {
  const text = args.includes('--interactive') ? await readInput() : '';
  const name = words(args, [
    '--entrypoint',
    '--network',
    '--pull',
    '--cap-drop',
    '--cap-add',
    '--security-opt',
    '--tmpfs',
    '--env',
    '--user',
    '--volume',
  ])[0];
  if (!findImage(readState(), name))
    throw new Failure(`docker: Error response from daemon: No such image: ${name}`, 125);
  const { invalidGateway } = scenario();
  if (invalidGateway) throw new Failure(`Error: adapting config using caddyfile: -:2: ${invalidGateway}`);
  call().stderr.write(`Valid configuration of ${text.length} characters\n`);
}

function eachContainer(change) {
  return (args) =>
    changeState((state) => {
      for (const name of words(args, ['--time', '-t'])) change(state, findContainer(state, name));
    });
}

const stop = eachContainer((_state, container) => {
  container.status = 'exited';
});
const start = eachContainer((_state, container) => startContainer(container));

const rename = ([from, to]) =>
  changeState((state) => {
    findContainer(state, from).name = to;
  });

const commands = {
  version,
  ps,
  inspect,
  image,
  pull,
  build,
  logs,
  cp,
  stop,
  start,
  restart: start,
  rename,
  run: runOnce,
  rm: eachContainer(removeContainer),
  info: () => call().stdout.write(`["name=seccomp"${scenario().isRootless ? ',"name=rootless"' : ''}]\n`),
  exec: (args) => {
    const container = findContainer(readState(), words(args)[0]);
    if (behaviourOf(container) === 'exits') throw new Failure(`Error response from daemon: container is not running`);
  },
  volume: ([verb, ...args]) => {
    if (verb === 'rm') words(args).forEach(removeVolume);
  },
};

/** Returns the scenario's own answer to a command. */
function answered(line) {
  return (scenario().answers ?? []).find(({ when }) => line.includes(when));
}

/** Resolves when the program was killed: it never ends by itself. */
const untilHungUp = () =>
  new Promise((resolve) => {
    const { hungUp } = call();
    if (hungUp.aborted) resolve();
    else hungUp.addEventListener('abort', () => resolve(), { once: true });
  });

async function main({ program, pid, args, env, stdout, stderr }) {
  const { engine = 'running', compose: kind = 'v2', leaks } = scenario();
  const isCompose = program === 'docker-compose' || args[0] === 'compose';
  const own = program === 'docker-compose' ? args : args.slice(1);
  record({ program, args, env, pid });
  const answer = answered([program, ...args].join(' '));
  if (leaks && !args.includes('version')) stderr.write(`${leaks}\n`);
  if (answer?.hangs) await untilHungUp();
  if (answer) {
    stdout.write(answer.stdout ?? '');
    throw new Failure(answer.stderr ?? '', answer.exitCode ?? 0);
  }
  const composeProgram = { v2: 'docker', v1: 'docker-compose' }[kind];
  if (isCompose && composeProgram !== program) throw new Failure('docker: unknown command: docker compose', 1);
  if (isCompose && own[0] === 'version') {
    stdout.write(`${composeVersions[kind]}\n`);
    return;
  }
  if (engine === 'silent') await untilHungUp();
  if (unreachable[engine]) {
    if (args[0] === 'version') stdout.write('{"Client":{"Version":"28.2.2"},"Server":null}\n');
    throw new Failure(unreachable[engine]);
  }
  if (isCompose) {
    // Only here, because its parser takes a while to load.
    const { compose } = await import('./compose.mjs');
    return await compose(own, kind);
  }
  const command = commands[args[0]];
  if (!command) throw new Failure(`docker: unknown command: docker ${args[0]}`, 125);
  await command(args.slice(1));
}

export function answerCall(made) {
  return calls.run(made, async () => {
    try {
      await main(made);
      return 0;
    } catch (error) {
      const text = error instanceof Failure ? error.message : String(error.stack);
      if (text !== '') made.stderr.write(`${text}\n`);
      return error.exitCode ?? 70;
    }
  });
}
