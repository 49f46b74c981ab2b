import { once } from 'node:events';
import { WebSocket } from 'ws';

/** Outcome of a turn, as a client sees it. */
export interface TurnOutcome {
  readonly status: string;
  /** Text of the last message of the agent. */
  readonly text: string;
  /** Pieces of the agent's messages that arrived. */
  readonly deltas: number;
  readonly firstDeltaMs: number;
  readonly ms: number;
}

interface Frame {
  readonly id?: number;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: unknown;
  readonly params?: {
    readonly threadId?: string;
    readonly turn?: { readonly status: string };
    readonly item?: { readonly type: string; readonly text?: string };
  };
}

interface WatchedTurn {
  readonly beganAt: number;
  readonly resolve: (outcome: TurnOutcome) => void;
  text: string;
  deltas: number;
  firstDeltaMs: number;
}

const turnEnds = new Set(['turn/completed', 'turn/failed', 'turn/cancelled']);

/** A client of the agent server that does as little as a correct one can. */
export class RpcClient {
  readonly #socket: WebSocket;
  readonly #answers = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  readonly #turns = new Map<string, WatchedTurn>();
  #id = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (bytes) => this.#receive(JSON.parse(String(bytes)) as Frame));
    socket.on('close', () => {
      for (const { reject } of this.#answers.values()) reject(new Error('the server closed the connection'));
    });
  }

  /** Connected and introduced. */
  static async open(url: string): Promise<RpcClient> {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    await once(socket, 'open');
    const client = new RpcClient(socket);
    await client.call('initialize', { clientInfo: { name: 'bench', version: '1' } });
    socket.send('{"jsonrpc":"2.0","method":"initialized"}');
    return client;
  }

  /** Parameters of the next notification or request of a method. @param itemType of its item; default: any */
  next(method: string, itemType?: string): Promise<unknown> {
    return new Promise((resolve) => {
      const hear = (bytes: unknown) => {
        const frame = JSON.parse(String(bytes)) as Frame;
        if (frame.method !== method || (itemType !== undefined && frame.params?.item?.type !== itemType)) return;
        this.#socket.off('message', hear);
        resolve(frame.params);
      };
      this.#socket.on('message', hear);
    });
  }

  close(): void {
    this.#socket.terminate();
  }

  /** Rejects with the error of the server. */
  call(method: string, params: unknown): Promise<unknown> {
    this.#id += 1;
    const id = this.#id;
    this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return new Promise((resolve, reject) => this.#answers.set(id, { resolve, reject }));
  }

  /** Starts a thread and gives back its id. */
  async startThread(config: unknown): Promise<string> {
    const { thread } = (await this.call('thread/start', { config })) as { readonly thread: { readonly id: string } };
    return thread.id;
  }

  /** Runs one turn to its end; its events arrive without a subscription. */
  async turn(threadId: string, text: string): Promise<TurnOutcome> {
    const ended = new Promise<TurnOutcome>((resolve) => {
      this.#turns.set(threadId, { beganAt: performance.now(), resolve, text: '', deltas: 0, firstDeltaMs: 0 });
    });
    await this.call('turn/start', { threadId, input: [{ type: 'text', text }] });
    return ended;
  }

  #receive({ id, method, params, result, error }: Frame): void {
    if (method !== undefined) {
      this.#hear(method, params ?? {});
      return;
    }
    const waiting = this.#answers.get(id ?? 0);
    this.#answers.delete(id ?? 0);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new Error(JSON.stringify(error)));
  }

  #hear(method: string, { threadId = '', turn, item }: NonNullable<Frame['params']>): void {
    const watched = this.#turns.get(threadId);
    if (!watched) return;
    if (method === 'item/agentMessage/delta') {
      watched.deltas += 1;
      if (watched.deltas === 1) watched.firstDeltaMs = performance.now() - watched.beganAt;
    } else if (method === 'item/completed' && item?.type === 'agentMessage') watched.text = item.text ?? '';
    else if (turnEnds.has(method)) {
      this.#turns.delete(threadId);
      const { resolve, beganAt, text, deltas, firstDeltaMs } = watched;
      resolve({ status: turn?.status ?? method, text, deltas, firstDeltaMs, ms: performance.now() - beganAt });
    }
  }
}
