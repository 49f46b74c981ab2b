import type { SpawnSyncOptions } from 'node:child_process';

export const root: string;
export function ensureDependencies(): void;
export function node22(): string;
export function toolEnvironment(): NodeJS.ProcessEnv;
export function run(command: string, args: readonly string[], options?: SpawnSyncOptions): void;
