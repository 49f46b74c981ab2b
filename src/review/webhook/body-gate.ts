import { type BodyAccount, type BodyGate, HttpError } from '../../http/index.ts';
import { limits } from './limits.ts';

export interface GateLimits {
  readonly firstByteMs: number;
  /** Received bytes of bodies that are not taken in yet: of all addresses, and of one. */
  readonly bytes: number;
  readonly bytesPerAddress: number;
  /** Incomplete bodies of one address. */
  readonly unfinishedPerAddress: number;
}

const defaultLimits: GateLimits = {
  firstByteMs: limits.firstByteMs,
  bytes: limits.bytesInFlight,
  bytesPerAddress: limits.bytesPerAddress,
  unfinishedPerAddress: limits.unfinishedPerAddress,
};

interface Unfinished {
  readonly address: string;
  readonly refuse: (error: HttpError) => void;
  bytes: number;
  isComplete: boolean;
}

/**
 * Bounds the bodies of deliveries whose signature is not checked yet. It counts received bytes, because announcing a length
 * costs a sender nothing. Over a bound the largest unfinished body is refused, not the newest: a delivery is small and soon
 * complete, so it gets through also where a proxy gives all senders one address.
 */
export class DeliveryGate implements BodyGate {
  readonly firstByteMs: number;
  readonly #limits: GateLimits;
  readonly #addressOf: (request: Parameters<BodyGate['open']>[0]) => string;
  readonly #all = new Set<Unfinished>();
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;

  /** @param addressOf returns the address for which a request counts */
  constructor(addressOf: (request: Parameters<BodyGate['open']>[0]) => string, gateLimits: Partial<GateLimits> = {}) {
    this.#limits = { ...defaultLimits, ...gateLimits };
    this.firstByteMs = this.#limits.firstByteMs;
    this.#addressOf = addressOf;
  }

  /** Received bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  open(request: Parameters<BodyGate['open']>[0], refuse: (error: HttpError) => void): BodyAccount {
    const address = this.#addressOf(request);
    const entry: Unfinished = { address, refuse, bytes: 0, isComplete: false };
    this.#all.add(entry);
    this.#boundCount(address);
    return {
      received: (bytes) => this.#received(entry, bytes),
      complete: () => {
        entry.isComplete = true;
      },
      close: () => this.#close(entry),
    };
  }

  #received(entry: Unfinished, bytes: number): void {
    if (!this.#all.has(entry)) return;
    entry.bytes += bytes;
    this.#add(entry.address, bytes);
    const { bytesPerAddress, bytes: all } = this.#limits;
    while ((this.#bytesOf.get(entry.address) ?? 0) > bytesPerAddress && this.#refuseLargest(entry.address));
    while (this.#bytes > all && this.#refuseLargest());
  }

  #boundCount(address: string): void {
    const own = [...this.#all].filter((each) => each.address === address && !each.isComplete);
    if (own.length <= this.#limits.unfinishedPerAddress) return;
    // A set keeps the order of insertion: the first has had the longest time to send its body.
    const [oldest] = own;
    if (oldest) this.#refuse(oldest);
  }

  /** Refuses the largest unfinished body. @returns whether there was one */
  #refuseLargest(address?: string): boolean {
    let largest: Unfinished | undefined;
    for (const each of this.#all) {
      if (each.isComplete || (address !== undefined && each.address !== address)) continue;
      if (largest === undefined || each.bytes > largest.bytes) largest = each;
    }
    if (!largest) return false;
    this.#refuse(largest);
    return true;
  }

  #refuse(entry: Unfinished): void {
    this.#close(entry);
    entry.refuse(
      new HttpError(503, 'intakeUnavailable', 'Too many bytes of deliveries are being taken in.', {}, [
        ['retry-after', String(limits.retryAfterSeconds)],
      ]),
    );
  }

  #close(entry: Unfinished): void {
    if (this.#all.delete(entry)) this.#add(entry.address, -entry.bytes);
  }

  #add(address: string, bytes: number): void {
    this.#bytes += bytes;
    const now = (this.#bytesOf.get(address) ?? 0) + bytes;
    if (now === 0) this.#bytesOf.delete(address);
    else this.#bytesOf.set(address, now);
  }
}
