/** The fake composition tool: reads real compositions, starts pretended containers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { addImage, createContainer, findImage, removeContainer, startContainer } from './containers.mjs';
import { call, changeState, Failure, place, scenario } from './state.mjs';

const withValue = ['--project-directory', '--env-file', '--project-name', '--file', '--ansi', '-f', '-p'];

/** Splits arguments into those before the verb and those after it. */
function split(args) {
  const globals = {};
  const files = [];
  let at = 0;
  while (args[at]?.startsWith('-')) {
    if (!withValue.includes(args[at])) throw new Failure(`unknown flag: ${args[at]}`, 125);
    if (['-f', '--file'].includes(args[at])) files.push(args[at + 1]);
    globals[args[at]] = args[at + 1];
    at += 2;
  }
  const [verb, ...rest] = args.slice(at);
  const flags = rest.filter((word) => word.startsWith('-'));
  return { globals, files, verb, flags, services: rest.filter((word) => !word.startsWith('-')) };
}

export async function compose(args) {
  const { globals, files, verb, flags, services } = split(args);
  if (!verbs[verb]) throw new Failure(`docker compose: unknown command ${verb}`, 16);
  const values = readValues(globals['--env-file']);
  const project = globals['--project-name'] ?? call().env.COMPOSE_PROJECT_NAME ?? values.COMPOSE_PROJECT_NAME;
  writeFileSync(place(`${project}.env.json`), JSON.stringify(values));
  const composition = compositionOf(files, values);
  const unknown = services.find((service) => !(service in composition.services));
  if (unknown) throw new Failure(`no such service: ${unknown}`);
  const meant = services.length > 0 ? services : Object.keys(composition.services);
  await verbs[verb]({ composition, project, flags, services: meant, isAll: services.length === 0 });
}

/** Reads the values of the file. The caller's environment overrides them, as in real engines. */
function readValues(file) {
  const lines = readFileSync(file, 'utf8').split('\n');
  const entries = lines.flatMap((line) => {
    const found = /^\s*([A-Za-z_]\w*)=(?:'([^']*)'|(.*))$/.exec(line);
    return found ? [[found[1], found[2] ?? found[3] ?? '']] : [];
  });
  return Object.fromEntries(entries.map(([key, value]) => [key, call().env[key] ?? value]));
}

const documents = new Map();

/** Each file of a stack is read at every command on it; nothing changes the parsed text. */
function parsed(text) {
  const document = documents.get(text) ?? parse(text);
  documents.set(text, document);
  return document;
}

function compositionOf(files, values) {
  const merged = { services: {}, volumes: {} };
  for (const file of files) {
    const { services = {}, volumes = {} } = parsed(interpolate(readFileSync(file, 'utf8'), values, file));
    Object.assign(merged.volumes, volumes);
    for (const [name, service] of Object.entries(services)) {
      const { environment = {}, ports = [], volumes: mounts = [], ...rest } = service;
      const before = merged.services[name] ?? { environment: {}, ports: [], volumes: [] };
      merged.services[name] = {
        ...before,
        ...rest,
        environment: { ...before.environment, ...environment },
        ports: [...before.ports, ...ports],
        volumes: [...before.volumes, ...mounts],
      };
    }
  }
  return merged;
}

function interpolate(text, values, file) {
  const withoutComments = text.replace(/^\s*#.*$/gm, '');
  return withoutComments.replace(/\$(\$)|\$\{(\w+)(?::?([-?])([^}]*))?\}/g, (_all, dollar, name, operator, word) => {
    if (dollar) return '$';
    const value = values[name];
    if (value !== undefined && value !== '') return value;
    if (operator === '?') {
      throw new Failure(`error while interpolating ${file}: required variable ${name} is missing a value: ${word}`);
    }
    return operator === '-' ? word : '';
  });
}

function partsOf(composition, project, service) {
  const { image, ports = [], volumes = [] } = composition.services[service];
  return {
    image,
    ports: ports.map(portOf),
    volumes: volumes.flatMap((text) => {
      const [source, target] = String(text).split(':');
      return source in composition.volumes ? [{ name: `${project}_${source}`, target }] : [];
    }),
  };
}

function portOf(text) {
  const words = String(text).split(':');
  const [hostPort, containerPort] = words.slice(-2).map(Number);
  return { host: words.slice(0, -2).join(':') || '0.0.0.0', hostPort, containerPort };
}

const ofProject = (state, project, services) =>
  state.containers.filter((each) => each.project === project && services.includes(each.service));

function withDependencies(composition, services) {
  const needed = new Set();
  const add = (service) => {
    for (const other of Object.keys(composition.services[service].depends_on ?? {})) add(other);
    needed.add(service);
  };
  services.forEach(add);
  return [...needed];
}

function up({ composition, project, flags, services }) {
  const meant = flags.includes('--no-deps') ? services : withDependencies(composition, services);
  for (const service of meant) {
    const isForced = flags.includes('--force-recreate') && services.includes(service);
    const isStarted = !flags.includes('--no-start');
    const line = changeState((state) => bringUp(state, { composition, project, service, isForced, isStarted }));
    call().stderr.write(` Container ${line}
`);
  }
}

function bringUp(state, { composition, project, service, isForced, isStarted }) {
  const parts = partsOf(composition, project, service);
  const settings = JSON.stringify(composition.services[service]);
  const [existing] = ofProject(state, project, [service]);
  const isSame = existing?.settings === settings && findImage(state, parts.image)?.id === existing.imageId;
  const isKept = existing && isSame && !isForced;
  if (existing && !isKept) removeContainer(state, existing);
  const container = isKept ? existing : createContainer(state, { project, service, ...parts });
  container.settings = settings;
  if (isStarted && container.status !== 'running') startContainer(container);
  return `${container.name}  ${isKept ? 'Running' : 'Started'}`;
}

function each(change) {
  return ({ project, services }) =>
    changeState((state) => {
      for (const container of ofProject(state, project, services)) change(state, container);
    });
}

function config({ composition, flags }) {
  const { invalidComposition } = scenario();
  if (invalidComposition) throw new Failure(invalidComposition);
  // A real one prints every secret.
  if (!flags.includes('--quiet') && !flags.includes('-q')) call().stdout.write(JSON.stringify(composition));
}

function pull({ composition, services }) {
  changeState((state) => {
    for (const service of services) addImage(state, composition.services[service].image, true);
  });
}

const stop = each((_state, container) => {
  container.status = 'exited';
});

const verbs = {
  up,
  config,
  pull,
  stop,
  rm: each(removeContainer),
  down: each(removeContainer),
  start: each((_state, container) => startContainer(container)),
  restart: each((_state, container) => startContainer(container)),
};
