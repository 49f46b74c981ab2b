import { limits } from './limits.ts';

interface Window {
  readonly since: number;
  readonly count: number;
}

/**
 * Counts wrong signatures by address. Soft: a valid signature is never delayed, because behind a gateway all clients have the
 * gateway's address. Bounded: a new address pushes out the one that was counted longest ago.
 */
export class WrongSignatures {
  readonly #windows = new Map<string, Window>();
  readonly #now: () => number;

  /** @param now milliseconds on a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Counts one wrong signature. @returns seconds to wait when there were too many, else undefined */
  count(address: string): number | undefined {
    const now = this.#now();
    const known = this.#windows.get(address);
    const isOpen = known !== undefined && now - known.since < limits.wrongSignatureWindowMs;
    const window: Window = isOpen ? { since: known.since, count: known.count + 1 } : { since: now, count: 1 };
    this.#windows.delete(address);
    this.#windows.set(address, window);
    if (this.#windows.size > limits.countedAddresses) this.#forgetOldest();
    if (window.count <= limits.wrongSignatures) return undefined;
    return Math.max(1, Math.ceil((window.since + limits.wrongSignatureWindowMs - now) / 1000));
  }

  #forgetOldest(): void {
    const [oldest] = this.#windows.keys();
    if (oldest !== undefined) this.#windows.delete(oldest);
  }
}
