/** Containers of the fake engine: how they start, and their visible state. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { changeState, digestOf, Failure, place, readState, scenario } from './state.mjs';

let count = 0;
const newId = () => `${process.pid.toString(16)}${(++count).toString(16)}`.padStart(64, 'c');

export const findContainer = (state, name) => {
  const found = state.containers.find((each) => each.id === name || each.name === name);
  if (!found) throw new Failure(`Error response from daemon: No such container: ${name}`);
  return found;
};

/** An image of the machine, by name, digest or id. */
export function findImage(state, name) {
  return state.images.find(
    ({ reference, id, digest }) => reference === name || id === name || id === `sha256:${name}` || digest === name,
  );
}

export function addImage(state, reference, isFromRegistry) {
  const repository = reference.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
  const content = `${reference} ${scenario().contents?.[reference] ?? ''}`;
  const digest = isFromRegistry ? `${repository}@${digestOf(`registry ${content}`)}` : null;
  state.images = state.images.filter((image) => image.reference !== reference);
  state.images.push({ reference, id: digestOf(content), digest });
}

export function createContainer(state, { project, service, image, ports, volumes }) {
  const found = findImage(state, image);
  if (!found) throw new Failure(`Error response from daemon: No such image: ${image}`);
  for (const { name } of volumes) {
    mkdirSync(place('volumes'), { recursive: true });
    if (!existsSync(place('volumes', name))) writeFileSync(place('volumes', name), `new volume ${name}`);
  }
  const container = {
    id: newId(),
    name: `${project}-${service}-1`,
    project,
    service,
    image,
    imageId: found.id,
    reference: found.reference,
    ports,
    volumes,
    status: 'created',
    startedAt: null,
    looks: 0,
  };
  state.containers.push(container);
  return container;
}

export function startContainer(container) {
  container.status = 'running';
  container.startedAt = new Date().toISOString();
  container.looks = 0;
}

export function removeContainer(state, { id }) {
  state.containers = state.containers.filter((each) => each.id !== id);
}

export function removeVolume(name) {
  const { containers } = readState();
  if (containers.some(({ volumes }) => volumes.some((volume) => volume.name === name))) {
    throw new Failure(`Error response from daemon: remove ${name}: volume is in use`);
  }
  rmSync(place('volumes', name), { force: true });
}

export const volumeAt = (container, path) => {
  const volume = container.volumes.find(({ target }) => target === path);
  if (!volume) throw new Failure(`Error response from daemon: container rootfs is marked read-only`);
  return place('volumes', volume.name);
};

/** Behaviour of a started container by scenario. */
const behaviours = {
  healthy: { State: { Health: { Status: 'healthy' } } },
  starting: { State: { Health: { Status: 'starting' } } },
  unhealthy: { State: { Health: { Status: 'unhealthy' } } },
  unchecked: {},
  exits: { State: { Status: 'exited', ExitCode: 1 } },
  restarts: { RestartCount: 3, State: { Status: 'restarting', ExitCode: 1 } },
  outOfMemory: { State: { Status: 'exited', ExitCode: 137, OOMKilled: true } },
};

export function behaviourOf(container) {
  const { brokenImages = [], services = {} } = scenario();
  if (brokenImages.includes(container.reference) || brokenImages.includes(container.image)) return 'exits';
  const { is = 'healthy', afterLooks = 0 } = services[container.service] ?? {};
  return container.looks < afterLooks ? 'starting' : is;
}

export function describeContainers(names) {
  const isMeant = ({ id, name }) => names.includes(id) || names.includes(name);
  const known = changeState(({ containers }) => {
    const found = containers.filter(isMeant);
    for (const container of found) container.looks++;
    return found;
  });
  const missing = names.filter((name) => !known.some((each) => each.id === name || each.name === name));
  return { described: known.map(describe), missing };
}

function describe(container) {
  const isStarted = container.status === 'running';
  const behaviour = isStarted ? behaviours[behaviourOf(container)] : {};
  const bindings = Object.fromEntries(
    container.ports.map(({ host, hostPort, containerPort }) => [
      `${containerPort}/tcp`,
      [{ HostIp: host, HostPort: String(hostPort) }],
    ]),
  );
  return {
    Id: container.id,
    Name: `/${container.name}`,
    Image: container.imageId,
    RestartCount: behaviour.RestartCount ?? 0,
    Config: {
      Image: container.image,
      Labels: { 'com.docker.compose.project': container.project, 'com.docker.compose.service': container.service },
      // A real engine shows it too: our commands must not print it.
      Env: Object.entries(readEnvFile(container.project)).map((entry) => entry.join('=')),
    },
    State: {
      Status: container.status,
      ExitCode: 0,
      OOMKilled: false,
      StartedAt: container.startedAt ?? '0001-01-01T00:00:00Z',
      ...behaviour.State,
    },
    HostConfig: { PortBindings: bindings },
    NetworkSettings: { Ports: isStarted ? bindings : {} },
    Mounts: container.volumes.map(({ name, target }) => ({ Type: 'volume', Name: name, Destination: target })),
  };
}

const readEnvFile = (project) => {
  const file = place(`${project}.env.json`);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
};
