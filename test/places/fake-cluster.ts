/** A stand-in for a Kubernetes API server with one node: its pods are real processes in namespaces of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { type WebSocket, WebSocketServer } from 'ws';
import { certificateFor } from '../deploy/doctor/tls.ts';
import { fixture, temporaryDirectory } from '../hub/harness.ts';
import { faultsOf } from './kubernetes-types.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects of the cluster, compared field by field
type Json = any;

/** Ends a request with a status and a body, or the message of a refusal. */
type Send = (status: number, answer: Json) => undefined;

interface StoredPod {
  readonly object: Json;
  readonly control: string;
  process: ChildProcess | null;
  killing?: NodeJS.Timeout;
}

/** Text of `command`, `args` and `env` as a container gets it: `$$` stands for one `$`. */
const unescaped = (text: string): string => text.replaceAll('$$', () => '$');

export interface FakeCluster {
  readonly server: string;
  readonly kubeconfig: string;
  /** Path of a file with this text instead of the kubeconfig file of the cluster. */
  configWith(change: (text: string) => string): string;
  /** `GET /api/v1/namespaces/work/pods/x` for each request, in order. */
  readonly requests: string[];
  /** Bodies of the requests. */
  readonly bodies: string[];
  /** Faults of the bodies against the published types. */
  readonly faults: string[];
  readonly pods: Map<string, StoredPod>;
  readonly leases: Map<string, Json>;
  /** Answers a request instead of the cluster; returns true then. */
  intercept: (request: string, response: ServerResponse) => boolean;
  /** Status of a new pod; undefined: the node runs it. */
  statusOfNew: (() => Json) | undefined;
  setStatus(name: string, status: Json): void;
  /** Ends the process of a pod like the kernel. */
  kill(name: string): void;
}

export const token = 'cluster-token';

export async function fakeCluster(t: Test): Promise<FakeCluster> {
  const { key, cert } = certificateFor(t, 'IP:127.0.0.1');
  const directory = temporaryDirectory(t);
  const watchers = new Set<(name: string, type: string, object: Json) => void>();
  const streams = new Set<WebSocket>();
  let version = 100;

  const touch = (object: Json) => {
    version += 1;
    object.metadata.resourceVersion = String(version);
    return object;
  };
  const notify = (type: string, object: Json) => {
    touch(object);
    for (const watcher of watchers) watcher(object.metadata.name, type, object);
  };
  const remove = (pod: StoredPod): undefined => {
    cluster.pods.delete(pod.object.metadata.name);
    notify('DELETED', pod.object);
    return undefined;
  };

  function run(pod: StoredPod): void {
    const { spec, metadata } = pod.object;
    const [container] = spec.containers;
    const mounts = container.volumeMounts
      .toSorted((a: Json, b: Json) => a.mountPath.split('/').length - b.mountPath.split('/').length)
      .flatMap(({ name, mountPath, subPath = '', readOnly }: Json) => {
        const volume = spec.volumes.find((each: Json) => each.name === name);
        // The program of this checkout replaces the one of the image, even below /tmp.
        if (volume.emptyDir) return ['--tmpfs', mountPath, '--ro-bind', process.cwd(), process.cwd()];
        return [readOnly ? '--ro-bind' : '--bind', join(volume.hostPath.path, subPath), mountPath];
      });
    const isolated = ['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/run'];
    const words = [
      ...[...isolated, '--unshare-net', '--unshare-pid', '--die-with-parent', ...mounts],
      ...['--bind', dirname(pod.control), '/run/control', '--chdir', container.workingDir, '--'],
      ...[process.execPath, fixture('kubernetes/container.mjs'), '/run/control/socket'],
      ...[...container.command, ...container.args].map(unescaped),
    ];
    const env = Object.fromEntries(container.env.map(({ name, value }: Json) => [name, unescaped(value)]));
    const child = spawn('bwrap', words, {
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    pod.process = child;
    child.on('exit', (code, signal) => {
      clearTimeout(pod.killing);
      pod.process = null;
      const exitCode = code ?? (signal === 'SIGKILL' ? 137 : 143);
      const reason = pod.object.reasonOfEnd ?? (exitCode === 0 ? 'Completed' : 'Error');
      pod.object.status = {
        phase: exitCode === 0 ? 'Succeeded' : 'Failed',
        containerStatuses: [{ name: container.name, state: { terminated: { exitCode, reason } } }],
      };
      notify('MODIFIED', pod.object);
      if (metadata.deletionTimestamp) remove(pod);
    });
    pod.object.status = { phase: 'Running', containerStatuses: [{ name: container.name, state: { running: {} } }] };
    notify('MODIFIED', pod.object);
  }

  /** Writes one line to the first process of a pod. */
  const ask = (pod: StoredPod, line: string) => {
    const socket = connect({ path: pod.control, allowHalfOpen: true });
    socket.on('error', () => socket.destroy());
    socket.write(line.padEnd(16));
    return socket;
  };

  function end(pod: StoredPod, graceSeconds: number): undefined {
    pod.object.metadata.deletionTimestamp ??= new Date().toISOString();
    notify('MODIFIED', pod.object);
    if (!pod.process) return remove(pod);
    ask(pod, 'signal SIGTERM').end();
    clearTimeout(pod.killing);
    pod.killing = setTimeout(() => pod.process?.kill('SIGKILL'), graceSeconds * 1_000);
    return undefined;
  }

  function serve(request: string, body: Json, query: URLSearchParams, response: ServerResponse): undefined {
    const send: Send = (status, answer) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      return undefined;
    };
    const refuse: Send = (code, message) => send(code, { kind: 'Status', status: 'Failure', message, code });
    const [method = '', path = ''] = request.split(' ');
    const [, kind = '', name = ''] = /\/namespaces\/work\/(pods|leases)(?:\/([^/]+))?$/.exec(path) ?? [];
    const types: Record<string, string> = { pods: 'Pod', leases: 'Lease' };
    const type = method === 'DELETE' ? 'DeleteOptions' : types[kind];
    if (body !== undefined && type !== undefined) cluster.faults.push(...faultsOf(body, { ref: type }, type));
    if (path === '/version') return send(200, { gitVersion: 'v1.30.4' });
    if (kind === 'leases') return serveLease(method, name, body, send, refuse);
    if (kind !== 'pods') return refuse(404, 'the server could not find the requested resource');
    const pod = cluster.pods.get(name);
    if (method === 'POST') return send(201, createPod(body));
    if (method === 'GET' && name === '') {
      if (query.has('watch')) return watch(query, response);
      const wanted = (query.get('labelSelector') ?? '').split(',').map((each) => each.split('='));
      const items = [...cluster.pods.values()]
        .map(({ object }) => object)
        .filter(({ metadata }) => wanted.every(([label = '', value]) => metadata.labels?.[label] === value));
      return send(200, { kind: 'PodList', items });
    }
    if (!pod) return refuse(404, `pods "${name}" not found`);
    if (method === 'GET') return send(200, pod.object);
    if (body?.preconditions?.uid !== pod.object.metadata.uid) return refuse(409, 'the UID in the precondition differs');
    end(pod, body.gracePeriodSeconds);
    return send(200, pod.object);
  }

  function createPod(body: Json): Json {
    const object = touch({ ...body, status: { phase: 'Pending' } });
    object.metadata = { ...object.metadata, uid: randomUUID(), namespace: 'work' };
    const control = join(mkdtempSync(join(directory, 'pod-')), 'socket');
    const pod: StoredPod = { object, control, process: null };
    cluster.pods.set(object.metadata.name, pod);
    const status = cluster.statusOfNew?.();
    if (status) object.status = status;
    else run(pod);
    return object;
  }

  function serveLease(method: string, name: string, body: Json, send: Send, refuse: Send): undefined {
    const known = cluster.leases.get(name || body?.metadata.name);
    if (method === 'POST') {
      if (known) return refuse(409, 'already exists');
      body.metadata.uid = randomUUID();
      cluster.leases.set(body.metadata.name, touch(body));
      return send(201, body);
    }
    if (!known) return refuse(404, `leases "${name}" not found`);
    if (method === 'GET') return send(200, known);
    const stated = method === 'PUT' ? body.metadata.resourceVersion : body.preconditions.resourceVersion;
    if (stated !== known.metadata.resourceVersion) return refuse(409, 'the object has been modified');
    if (method === 'DELETE') cluster.leases.delete(name);
    else cluster.leases.set(name, touch({ ...known, spec: body.spec }));
    return send(200, known);
  }

  function watch(query: URLSearchParams, response: ServerResponse): undefined {
    const name = (query.get('fieldSelector') ?? '').replace('metadata.name=', '');
    const emit = (type: string, object: Json) => response.write(`${JSON.stringify({ type, object })}\n`);
    const watcher = (changed: string, type: string, object: Json) => void (changed === name && emit(type, object));
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    const now = cluster.pods.get(name)?.object;
    if (!now || Number(now.metadata.resourceVersion) > Number(query.get('resourceVersion'))) emit('MODIFIED', now);
    watchers.add(watcher);
    response.on('close', () => watchers.delete(watcher));
  }

  const server = createServer({ key, cert }, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming
      .on('data', (chunk) => chunks.push(chunk))
      .on('end', () => {
        const url = new URL(incoming.url ?? '/', 'https://cluster');
        const request = `${incoming.method} ${url.pathname}`;
        const text = Buffer.concat(chunks).toString();
        cluster.requests.push(request);
        cluster.bodies.push(text);
        if (cluster.intercept(request, response)) return;
        if (incoming.headers.authorization !== `Bearer ${token}`)
          response.writeHead(401).end('{"kind":"Status","message":"Unauthorized"}');
        else serve(request, text === '' ? undefined : JSON.parse(text), url.searchParams, response);
      });
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: ([first = '']) => first });
  server.on('upgrade', (incoming: IncomingMessage, stream, head) => {
    const url = new URL(incoming.url ?? '/', 'https://cluster');
    cluster.requests.push(`CONNECT ${url.pathname}`);
    const [, name = '', way] = /\/pods\/([^/]+)\/(attach|portforward)$/.exec(url.pathname) ?? [];
    const pod = cluster.pods.get(name);
    if (!pod || incoming.headers.authorization !== `Bearer ${token}`)
      return stream.end('HTTP/1.1 404 Not Found\r\n\r\n');
    return sockets.handleUpgrade(incoming, stream, head, (socket) => {
      streams.add(socket);
      socket.on('close', () => streams.delete(socket)).on('error', () => {});
      if (way === 'attach') attach(pod, socket);
      else forward(pod, Number(url.searchParams.get('ports')), socket);
    });
  });

  /** The first process may not listen yet. */
  function attach(pod: StoredPod, socket: WebSocket): void {
    const chunks: Buffer[] = [];
    const begin = () => {
      const input = connect({ path: pod.control, allowHalfOpen: true });
      input.on('error', () => setTimeout(begin, 10).unref());
      input.on('connect', () => input.end(Buffer.concat([Buffer.from('stdin'.padEnd(16)), ...chunks])));
    };
    socket.on('message', (data: Buffer) => data[0] === 0 && chunks.push(data.subarray(1)));
    socket.on('close', begin);
  }

  function forward(pod: StoredPod, port: number, socket: WebSocket): void {
    const [low, high] = [port & 255, port >> 8];
    for (const channel of [0, 1]) socket.send(Buffer.from([channel, low, high]));
    const inner = ask(pod, `forward ${port}`);
    inner.on('data', (chunk) => socket.send(Buffer.concat([Buffer.from([0]), chunk])));
    inner.on('close', () => socket.close());
    socket.on('message', (data: Buffer) => data[0] === 0 && inner.write(data.subarray(1)));
    socket.on('close', () => inner.destroy());
  }

  const write = (text: string) => {
    const path = join(mkdtempSync(join(directory, 'config-')), 'config');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = `
apiVersion: v1
kind: Config
current-context: here
contexts: [{ name: here, context: { cluster: here, user: me, namespace: work } }]
clusters:
  - name: here
    cluster: { server: "${address}", certificate-authority-data: ${Buffer.from(cert).toString('base64')} }
users: [{ name: me, user: { token: ${token} } }]
`;
  const cluster: FakeCluster = {
    ...{ server: address, kubeconfig: write(config), configWith: (change) => write(change(config)) },
    ...{ requests: [], bodies: [], faults: [], pods: new Map(), leases: new Map() },
    intercept: () => false,
    statusOfNew: undefined,
    setStatus(name, status) {
      const pod = cluster.pods.get(name);
      if (!pod) throw new Error(`no pod ${name}`);
      pod.object.status = status;
      notify('MODIFIED', pod.object);
    },
    kill: (name) => void cluster.pods.get(name)?.process?.kill('SIGKILL'),
  };
  t.teardown(() => {
    for (const { process: child, killing } of cluster.pods.values()) {
      clearTimeout(killing);
      child?.kill('SIGKILL');
    }
    for (const socket of streams) socket.terminate();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return cluster;
}
