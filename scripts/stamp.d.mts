export function sourcesHash(): string;
export function isBuilt(): boolean;
export function markBuilt(hash: string): void;
