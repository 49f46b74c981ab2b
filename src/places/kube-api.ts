import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import * as v from 'valibot';
import type { WebSocket } from 'ws';
import { messageOf } from '../lib/index.ts';
import { EngineRefusal, EngineUnreachableError } from './engine-api.ts';
import type { ClusterAccess } from './kube-config.ts';
import { type Lease, Lease as LeaseSchema, type Pod, Pod as PodSchema } from './kube-types.ts';
import { PlaceError } from './place.ts';
import { portStream } from './pod-stream.ts';

const askMs = 10_000;
const answerBytes = 8_388_608;
/** Longest pause that an API server can ask for before a request is repeated. */
const maxRetryAfterMs = 10_000;
const maxRepetitions = 3;
/** Duration of one watch; afterwards the pod is read again. */
const watchSeconds = 60;

const Status = v.object({ message: v.optional(v.string(), ''), reason: v.optional(v.string(), '') });
const Pods = v.object({ items: v.array(PodSchema) });

interface Asked {
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

/**
 * Client of a Kubernetes API server, for the pods and leases of one namespace. Each request throws `EngineUnreachableError`,
 * `EngineRefusal`, or `PlaceError` of a credential program.
 */
export class KubeApi {
  readonly access: ClusterAccess;
  readonly #base: string;
  readonly #answerMs: number;

  constructor(access: ClusterAccess, namespace: string, answerMs = askMs) {
    this.access = access;
    this.#base = `/namespaces/${encodeURIComponent(namespace)}`;
    this.#answerMs = answerMs;
  }

  /** Version of the cluster, e.g. `v1.33.1`. */
  async version(): Promise<string> {
    return (await this.#ask(v.object({ gitVersion: v.string() }), 'GET', '/version')).gitVersion;
  }

  async answers(): Promise<boolean> {
    return this.#send('GET', '/version', { timeoutMs: 5_000 }).then(
      () => true,
      (error: unknown) => error instanceof EngineRefusal,
    );
  }

  create(pod: object): Promise<Pod> {
    return this.#ask(PodSchema, 'POST', this.#pods(), { body: pod });
  }

  pod(name: string): Promise<Pod | undefined> {
    return unlessMissing(this.#ask(PodSchema, 'GET', this.#pods(name)));
  }

  /** Pods with all these labels. */
  async list(labels: Readonly<Record<string, string>>): Promise<readonly Pod[]> {
    const selector = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
    const query = `?labelSelector=${encodeURIComponent(selector.join(','))}`;
    return (await this.#ask(Pods, 'GET', `${this.#pods()}${query}`)).items;
  }

  /** Resolves at the next change of a pod, or when the server ends the watch. */
  async changed(name: string, resourceVersion: string, signal: AbortSignal): Promise<void> {
    const query = new URLSearchParams({
      ...{ watch: '1', fieldSelector: `metadata.name=${name}`, resourceVersion },
      timeoutSeconds: String(watchSeconds),
    });
    const answer = await this.#open('GET', `${this.#pods()}?${query}`, {
      signal,
      timeoutMs: (watchSeconds + 10) * 1_000,
    });
    try {
      const status = answer.statusCode ?? 0;
      // The version of the pod is too old to watch from: it is read again.
      if (status === 410) return;
      if (status >= 300) throw new EngineRefusal(status, `HTTP ${status} for a watch`);
      for await (const _ of answer) return;
    } catch (error) {
      throw error instanceof EngineRefusal ? error : this.#unreachable(error);
    } finally {
      answer.destroy();
    }
  }

  /** Deletes exactly this pod; ignores a pod that is missing, or that another pod has replaced. */
  async delete(name: string, uid: string, gracePeriodSeconds: number): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds, preconditions: { uid } };
    await this.#send('DELETE', this.#pods(name), { body }).catch((error: unknown) => {
      if (!(error instanceof EngineRefusal && [404, 409].includes(error.status))) throw error;
    });
  }

  lease(name: string): Promise<Lease | undefined> {
    return unlessMissing(this.#ask(LeaseSchema, 'GET', this.#leases(name)));
  }

  createLease(lease: object): Promise<Lease> {
    return this.#ask(LeaseSchema, 'POST', this.#leases(), { body: lease });
  }

  replaceLease(name: string, lease: object): Promise<Lease> {
    return this.#ask(LeaseSchema, 'PUT', this.#leases(name), { body: lease });
  }

  async deleteLease(name: string, preconditions: object): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
    await this.#send('DELETE', this.#leases(name), { body }).catch((error: unknown) => {
      if (!(error instanceof EngineRefusal && [404, 409].includes(error.status))) throw error;
    });
  }

  /** Writes to standard input of a container that runs. Channel 0 of the protocol is standard input. */
  async write(name: string, container: string, text: string): Promise<void> {
    const query = new URLSearchParams({ container, stdin: 'true', stdout: 'false', stderr: 'false' });
    const socket = await this.#socket(`${this.#pods(name)}/attach?${query}`, [
      'v5.channel.k8s.io',
      'v4.channel.k8s.io',
    ]);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => socket.terminate(), this.#answerMs);
      socket
        .once('error', (error) => reject(this.#unreachable(error)))
        .once('close', (code) => {
          clearTimeout(timer);
          if (code === 1006) reject(this.#unreachable(new Error('it cut the connection to standard input')));
          else resolve();
        });
      socket.resume();
      socket.send(Buffer.concat([Buffer.from([0]), Buffer.from(text)]));
      // Version 5 of the protocol closes standard input with a message; earlier versions close it with the connection.
      if (socket.protocol === 'v5.channel.k8s.io') socket.send(Buffer.from([255, 0]));
      socket.close(1000);
    });
  }

  /** Opens a connection to a port of a pod. */
  async forward(name: string, port: number): Promise<Duplex> {
    const socket = await this.#socket(`${this.#pods(name)}/portforward?ports=${port}`, ['v4.channel.k8s.io']);
    return portStream(socket);
  }

  #pods(name?: string): string {
    return `/api/v1${this.#base}/pods${name === undefined ? '' : `/${encodeURIComponent(name)}`}`;
  }

  #leases(name?: string): string {
    const end = name === undefined ? '' : `/${encodeURIComponent(name)}`;
    return `/apis/coordination.k8s.io/v1${this.#base}/leases${end}`;
  }

  async #ask<S extends v.GenericSchema>(
    schema: S,
    method: string,
    path: string,
    asked?: Asked,
  ): Promise<v.InferOutput<S>> {
    const read = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), await this.#send(method, path, asked));
    if (read.success) return read.output;
    throw new EngineRefusal(0, `it sent an invalid answer to ${method} ${path.split('?')[0]}`);
  }

  /** Text of a successful answer. Repeats a request that the server refuses with 429 and a time. */
  async #send(method: string, path: string, asked: Asked = {}): Promise<string> {
    for (let repetitions = 0; ; repetitions += 1) {
      const answer = await this.#open(method, path, asked);
      const text = await bodyOf(answer).catch((error: unknown) => {
        throw error instanceof EngineRefusal ? error : this.#unreachable(error);
      });
      const status = answer.statusCode ?? 0;
      if (status < 300) return text;
      const seconds = Number(answer.headers['retry-after']);
      const waitMs = seconds * 1_000;
      if (status === 429 && waitMs >= 0 && waitMs <= maxRetryAfterMs && repetitions < maxRepetitions) {
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        continue;
      }
      const problem = v.safeParse(v.pipe(v.string(), v.parseJson(), Status), text);
      const words = (problem.success && problem.output.message) || `HTTP ${status}`;
      throw new EngineRefusal(status, words.slice(0, 1_000));
    }
  }

  async #open(method: string, path: string, { body, signal, timeoutMs = this.#answerMs }: Asked) {
    const content = body === undefined ? undefined : JSON.stringify(body);
    const { headers, ...tls } = await this.#connection();
    const https = process.getBuiltinModule('node:https');
    const ends = [AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])];
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = https.request(`${this.access.server}${path}`, {
        ...{ method, ...tls, agent: false, signal: AbortSignal.any(ends) },
        headers: {
          ...{ ...headers, accept: 'application/json' },
          ...(content !== undefined && {
            ...{ 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) },
          }),
        },
      });
      request.on('response', resolve).on('error', reject);
      request.end(content);
    }).catch((error: unknown) => {
      // A credential that is not a header or a certificate throws at once.
      throw this.#unreachable(error);
    });
    if (answer.statusCode === 401) this.access.renew();
    return answer;
  }

  async #connection() {
    const { token, cert, key } = await this.access.credentials();
    const { ca, serverName } = this.access;
    return {
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && key !== undefined && { cert, key }),
      ...(serverName !== undefined && { servername: serverName }),
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    };
  }

  /** Opens a connection of channels. */
  async #socket(path: string, protocols: string[]): Promise<WebSocket> {
    const { WebSocket } = await import('ws');
    const options = { ...(await this.#connection()), handshakeTimeout: this.#answerMs, followRedirects: false };
    const url = `${this.access.server.replace(/^https/, 'wss')}${path}`;
    return new Promise<WebSocket>((resolve, reject) => {
      const socket = new WebSocket(url, protocols, { ...options, maxPayload: answerBytes });
      socket.once('open', () => {
        socket.off('error', onError);
        // The caller reads when it listens.
        socket.pause();
        resolve(socket);
      });
      const onError = (error: Error) => reject(error);
      socket.on('error', onError);
      socket.once('unexpected-response', (_, answer: IncomingMessage) => {
        if (answer.statusCode === 401) this.access.renew();
        reject(new EngineRefusal(answer.statusCode ?? 0, `HTTP ${answer.statusCode} for ${path.split('?')[0]}`));
        answer.destroy();
      });
    }).catch((error: unknown) => {
      throw error instanceof EngineRefusal ? error : this.#unreachable(error);
    });
  }

  #unreachable(error: unknown): Error {
    if (error instanceof PlaceError) return error;
    const message = `The API server ${this.access.server} does not answer: ${messageOf(error)}`;
    return new EngineUnreachableError(message, { cause: error });
  }
}

async function unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof EngineRefusal && error.status === 404) return undefined;
    throw error;
  }
}

async function bodyOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > answerBytes) throw new EngineRefusal(0, 'its answer exceeds the size limit');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
