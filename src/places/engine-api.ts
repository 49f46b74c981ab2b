import { statSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import * as v from 'valibot';
import { messageOf } from '../lib/index.ts';

/** The engine does not answer. Containers may still run, but their state is unknown. */
export class EngineUnreachableError extends Error {
  override readonly name = 'EngineUnreachableError';

  /** This user may not use the socket. */
  get isForbidden(): boolean {
    return (this.cause as NodeJS.ErrnoException | undefined)?.code === 'EACCES';
  }
}

/** The engine has answered with an error. */
export class EngineRefusal extends Error {
  override readonly name = 'EngineRefusal';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const version = '/v1.41';
const askMs = 10_000;
/** An answer to work takes this much longer than another answer. */
const workFactor = 2.5;
/** Podman starts other programs to describe itself. A hanging engine is still reported within 20 s. */
const factsFactor = 1.5;
const answerBytes = 8_388_608;

const Problem = v.object({ message: v.string() });
const Created = v.object({ Id: v.string() });
const Ended = v.object({ StatusCode: v.number() });
const Labels = v.nullish(v.record(v.string(), v.string()));
export type ContainerLabels = v.InferOutput<typeof Labels>;
const Details = v.object({
  Id: v.string(),
  /** Docker writes a slash before it. */
  Name: v.string(),
  Config: v.object({ Labels }),
  State: v.object({
    ...{ Status: v.string(), Running: v.boolean(), Pid: v.number(), ExitCode: v.number() },
    /** The kernel has ended a process of the container that exceeded its memory limit. */
    OOMKilled: v.optional(v.boolean(), false),
  }),
  /** Memory limit in bytes; 0: none. */
  HostConfig: v.optional(v.object({ Memory: v.optional(v.number(), 0) }), {}),
});
export type ContainerDetails = v.InferOutput<typeof Details>;
const Listed = v.array(v.object({ Id: v.string(), Names: v.array(v.string()), Labels }));
const Info = v.object({
  ServerVersion: v.optional(v.string(), ''),
  /** Docker names a rootless engine here. */
  SecurityOptions: v.nullish(v.array(v.string())),
  /** Field of Podman. */
  Rootless: v.optional(v.boolean()),
});

/** Self-description of an engine. */
export interface EngineFacts {
  readonly name: 'docker' | 'podman';
  readonly version: string;
  /** Root in a container is the user of the engine. */
  readonly isRootless: boolean;
}

interface Asked {
  readonly body?: unknown;
  /** Time limit of the whole answer in milliseconds; 0: no limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** Facts of the engines that were asked, by path of the socket. */
const known = new Map<string, { readonly file: string; readonly facts: EngineFacts }>();

/** Client of the Engine API of Docker and Podman, on its unix socket. Each request throws `EngineUnreachableError` or `EngineRefusal`. */
export class EngineApi {
  readonly socket: string;
  readonly #answerMs: number;
  readonly #workMs: number;

  /** @param answerMs time limit of an answer and of the end of standard input */
  constructor(socket: string, answerMs = askMs) {
    this.socket = socket;
    this.#answerMs = answerMs;
    this.#workMs = answerMs * workFactor;
  }

  async facts(): Promise<EngineFacts> {
    const { ServerVersion, SecurityOptions, Rootless } = await this.#ask(Info, 'GET', '/info', {
      timeoutMs: this.#answerMs * factsFactor,
    });
    return {
      name: Rootless === undefined ? 'docker' : 'podman',
      version: ServerVersion,
      isRootless: Rootless ?? (SecurityOptions ?? []).some((option) => /(^|=|,)rootless/.test(option)),
    };
  }

  /** Facts, asked once for each socket file: the answer of Podman takes seconds on a busy machine. */
  async knownFacts(): Promise<EngineFacts> {
    const { ino, ctimeMs } = statSync(this.socket, { throwIfNoEntry: false }) ?? {};
    const file = `${ino} ${ctimeMs}`;
    const last = known.get(this.socket);
    if (last?.file === file) return last.facts;
    const facts = await this.facts();
    known.set(this.socket, { file, facts });
    return facts;
  }

  async answers(): Promise<boolean> {
    return this.#send('GET', '/_ping', { timeoutMs: 5_000 }).then(
      () => true,
      () => false,
    );
  }

  async hasImage(image: string): Promise<boolean> {
    return this.#unlessMissing(
      this.#send('GET', `/images/${image.split('/').map(encodeURIComponent).join('/')}/json`),
    ).then(Boolean);
  }

  /** @returns id of the container */
  async create(name: string, spec: object): Promise<string> {
    const path = `/containers/create?name=${encodeURIComponent(name)}`;
    return (await this.#ask(Created, 'POST', path, { body: spec, timeoutMs: this.#workMs })).Id;
  }

  async start(id: string): Promise<void> {
    await this.#send('POST', `${at(id)}/start`, { timeoutMs: this.#workMs });
  }

  /** Writes to standard input of a running container, then closes it. */
  async write(id: string, text: string): Promise<void> {
    const socket = await this.#attach(id);
    await new Promise<void>((resolve, reject) => {
      const fail = (error: unknown) => reject(this.#unreachable(error));
      const timer = setTimeout(
        () => socket.destroy(new Error(`no input was read within ${this.#answerMs} ms`)),
        this.#answerMs,
      );
      socket.once('error', fail).once('close', () => {
        clearTimeout(timer);
        fail(new Error('it closed the connection to standard input'));
      });
      socket.end(text, () => {
        clearTimeout(timer);
        resolve();
      });
    });
    // The engine reads to the end of the text, then closes the connection.
    socket
      .on('error', () => {})
      .resume()
      .unref();
  }

  /** Resolves with the exit code when the container has ended. */
  async ended(id: string, signal: AbortSignal): Promise<number> {
    return (await this.#ask(Ended, 'POST', `${at(id)}/wait?condition=not-running`, { timeoutMs: 0, signal }))
      .StatusCode;
  }

  /** Sends a signal; ignores a container that has already ended. */
  async signal(id: string, name: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#send('POST', `${at(id)}/kill?signal=${name}`).catch((error: unknown) => {
      if (!(error instanceof EngineRefusal && [404, 409].includes(error.status))) throw error;
    });
  }

  async unpause(id: string): Promise<void> {
    await this.#send('POST', `${at(id)}/unpause`).catch((error: unknown) => {
      if (!(error instanceof EngineRefusal)) throw error;
    });
  }

  /** Ends and removes a container; ignores a container that is missing or already being removed. */
  async remove(id: string): Promise<void> {
    await this.#send('DELETE', `${at(id)}?force=1&v=1`, { timeoutMs: this.#workMs }).catch((error: unknown) => {
      if (!(error instanceof EngineRefusal && [404, 409].includes(error.status))) throw error;
    });
  }

  /** Details of a container; undefined if it does not exist. */
  async inspect(id: string): Promise<ContainerDetails | undefined> {
    return this.#unlessMissing(this.#ask(Details, 'GET', `${at(id)}/json`));
  }

  /** Lists the containers with all these labels, including ended containers. */
  async list(labels: Readonly<Record<string, string>>): Promise<v.InferOutput<typeof Listed>> {
    const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
    const filters = encodeURIComponent(JSON.stringify({ label }));
    return this.#ask(Listed, 'GET', `/containers/json?all=1&filters=${filters}`);
  }

  async #unlessMissing<T>(asked: Promise<T>): Promise<T | undefined> {
    try {
      return await asked;
    } catch (error) {
      if (error instanceof EngineRefusal && error.status === 404) return undefined;
      throw error;
    }
  }

  async #ask<S extends v.GenericSchema>(
    schema: S,
    method: string,
    path: string,
    asked?: Asked,
  ): Promise<v.InferOutput<S>> {
    const read = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), await this.#send(method, path, asked));
    if (read.success) return read.output;
    throw new EngineRefusal(0, `The container engine sent an invalid answer to ${method} ${path.split('?')[0]}`);
  }

  /** Text of a successful answer. */
  #send(method: string, path: string, { body, timeoutMs = this.#answerMs, signal }: Asked = {}): Promise<string> {
    const content = body === undefined ? undefined : JSON.stringify(body);
    const headers =
      content === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(content) };
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => reject(this.#unreachable(error));
      const ending = timeoutMs === 0 ? undefined : AbortSignal.timeout(timeoutMs);
      const ends = [ending, signal].filter((each) => each !== undefined);
      const options = {
        ...this.#options(method, path, headers),
        ...(ends.length > 0 && { signal: AbortSignal.any(ends) }),
      };
      const sent = httpRequest(
        options,
        (answer) =>
          void readAnswer(answer).then(resolve, (error: unknown) => {
            if (error instanceof EngineRefusal) reject(error);
            else fail(error);
          }),
      );
      sent.on('error', fail).end(content);
    });
  }

  #attach(id: string): Promise<Socket> {
    const options = this.#options('POST', `${at(id)}/attach?stream=1&stdin=1`, {
      connection: 'Upgrade',
      upgrade: 'tcp',
    });
    return new Promise((resolve, reject) => {
      const sent = httpRequest(options);
      const timer = setTimeout(() => sent.destroy(new Error(`no answer within ${this.#answerMs} ms`)), this.#answerMs);
      sent.on('error', (error) => reject(this.#unreachable(error))).on('close', () => clearTimeout(timer));
      sent.on('upgrade', (_answer, socket: Socket) => {
        clearTimeout(timer);
        resolve(socket);
      });
      sent.on('response', (answer) => {
        void readAnswer(answer).then(
          () =>
            reject(new EngineRefusal(answer.statusCode ?? 0, 'The container engine cannot attach to standard input')),
          reject,
        );
      });
      sent.end();
    });
  }

  #options(method: string, path: string, headers: RequestOptions['headers']): RequestOptions {
    return {
      socketPath: this.socket,
      method,
      path: `${version}${path}`,
      headers: { host: 'engine', ...headers },
      agent: false,
    };
  }

  #unreachable(error: unknown): EngineUnreachableError {
    const { code } = (error ?? {}) as NodeJS.ErrnoException;
    const reason =
      code === 'EACCES'
        ? 'this user has no permission to use the socket'
        : code === 'ENOENT'
          ? 'the socket does not exist'
          : messageOf(error);
    return new EngineUnreachableError(`The container engine at ${this.socket} does not answer: ${reason}`, {
      cause: error,
    });
  }
}

const at = (id: string): string => `/containers/${encodeURIComponent(id)}`;

/** @throws EngineRefusal, or an error of the connection */
async function readAnswer(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > answerBytes) throw new EngineRefusal(0, 'The answer of the container engine exceeds the size limit');
    chunks.push(chunk as Buffer);
  }
  const text = Buffer.concat(chunks).toString('utf8');
  const status = answer.statusCode ?? 0;
  if (status < 400) return text;
  const problem = v.safeParse(v.pipe(v.string(), v.parseJson(), Problem), text);
  throw new EngineRefusal(status, problem.success ? problem.output.message : `HTTP ${status}`);
}
