import type { SpawnSyncOptions } from 'node:child_process';

export const root: string;
export function installOnce(directory: string, install: (npm: string) => void): void;
export function ensureDependencies(): void;
export function node22(): string;
export function toolEnvironment(): NodeJS.ProcessEnv;
export function run(command: string, args: readonly string[], options?: SpawnSyncOptions): void;
