import type { ServerResponse } from 'node:http';

/** Fault that the forge injects instead of, or after, executing a request. */
export interface Fault {
  /** Which requests; every one when left out. */
  readonly matches?: (method: string, path: string) => boolean;
  /** How many of them; 1 when left out. */
  times?: number;
  /**
   * `status`: this answer and nothing done. `cutBefore`, `cutAfter`: the connection ends, before or after it was done.
   * `cutBody`: in the middle of the answer. `hang`: no answer, nothing done. `hangAfter`: no answer, but done.
   * `statusAfter`: done, and this answer. `nonsense`: 200 with no JSON. `slow`: the answer comes late.
   * `late`: the connection ends, and it is done when `until` resolves.
   * `holdBefore`, `holdAfter`: until `until`, before it is done (never, if the client has disconnected) or before it is answered.
   */
  readonly kind:
    | 'status'
    | 'statusAfter'
    | 'cutBefore'
    | 'cutAfter'
    | 'cutBody'
    | 'hang'
    | 'hangAfter'
    | 'nonsense'
    | 'slow'
    | 'late'
    | 'holdBefore'
    | 'holdAfter';
  readonly status?: number;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly delayMs?: number;
  readonly until?: Promise<unknown>;
  /** Called when a request has come to the place where it is held, or hangs. */
  readonly onHeld?: () => void;
  /** Called with the status when a `late` request has been done. */
  readonly onDone?: (status: number) => void;
}

/** A held request. */
export interface Hold {
  /** Resolves when one is there. */
  readonly reached: Promise<void>;
  release(): void;
}

/** Faults in the order in which they were asked for; each is used up. */
export class Faults {
  readonly #waiting: Fault[] = [];
  readonly #held = new Set<() => void>();

  add(fault: Fault): void {
    this.#waiting.push({ ...fault });
  }

  /** Keeps the next such request, and all that come while it waits, until it is let go. */
  hold(matches: NonNullable<Fault['matches']>, when: 'before' | 'after' = 'before'): Hold {
    const reached = Promise.withResolvers<void>();
    const until = Promise.withResolvers<void>();
    const fault: Fault = {
      kind: when === 'before' ? 'holdBefore' : 'holdAfter',
      matches,
      times: Number.POSITIVE_INFINITY,
      until: until.promise,
      onHeld: reached.resolve,
    };
    this.#waiting.push(fault);
    const release = () => {
      const at = this.#waiting.indexOf(fault);
      if (at >= 0) this.#waiting.splice(at, 1);
      this.#held.delete(release);
      until.resolve();
    };
    this.#held.add(release);
    return { reached: reached.promise, release };
  }

  clear(): void {
    for (const release of this.#held) release();
    this.#waiting.length = 0;
  }

  take(method: string, path: string): Fault | undefined {
    const at = this.#waiting.findIndex(({ matches }) => matches?.(method, path) ?? true);
    const fault = this.#waiting[at];
    if (!fault) return;
    const times = (fault.times ?? 1) - 1;
    if (times > 0) fault.times = times;
    else this.#waiting.splice(at, 1);
    return fault;
  }
}

export const happensFirst = ({ kind }: Fault): boolean =>
  ['statusAfter', 'cutAfter', 'cutBody', 'hangAfter', 'slow', 'holdAfter'].includes(kind);

/** Primary: nothing left until `resetAt`. Both as GitHub words them. */
export const rateLimits = {
  primary: (resetAtSeconds: number): Fault => ({
    kind: 'status',
    status: 403,
    message: 'API rate limit exceeded for installation ID 1.',
    headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(resetAtSeconds) },
  }),
  secondary: (retryAfterSeconds?: number): Fault => ({
    kind: 'status',
    status: 403,
    message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
    ...(retryAfterSeconds !== undefined && { headers: { 'retry-after': String(retryAfterSeconds) } }),
  }),
};

/** Acts on the connection. @returns whether the answer is settled */
export async function act(fault: Fault, response: ServerResponse, body: string): Promise<boolean> {
  switch (fault.kind) {
    case 'status':
    case 'statusAfter': {
      const message = fault.message ?? 'Fault';
      response.writeHead(fault.status ?? 500, { 'content-type': 'application/json; charset=utf-8', ...fault.headers });
      response.end(JSON.stringify({ message, documentation_url: 'https://docs.github.com/rest' }));
      return true;
    }
    case 'nonsense':
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end('<html>proxy</html>');
      return true;
    case 'cutBody':
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(body.length + 100) });
      response.write(body.slice(0, Math.ceil(body.length / 2)), () => response.destroy());
      return true;
    case 'late':
      response.destroy();
      fault.onHeld?.();
      await fault.until;
      return true;
    case 'cutBefore':
    case 'cutAfter':
      response.destroy();
      return true;
    case 'hang':
    case 'hangAfter':
      fault.onHeld?.();
      return true;
    case 'slow':
      await new Promise((resolve) => setTimeout(resolve, fault.delayMs));
      return response.destroyed;
    case 'holdBefore':
    case 'holdAfter':
      fault.onHeld?.();
      await fault.until;
      return response.destroyed;
  }
}
