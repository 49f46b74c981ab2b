interface LockedPackage {
  readonly [field: string]: unknown;
}

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export const replacesHost: string;
export function withAddresses(lock: Lock): Lock;
export function withAddressedLock<T>(directory: string, work: () => T): T;
