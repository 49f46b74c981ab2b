/** Installs missing packages that the tests need, where that needs no password, and warns of those that stay missing. */
export function ensureSystemTools(): void;
/** Does the same for a run with the story on a container engine, which itself says what stays missing of `engineTools`. */
export function ensureSystemToolsAndEngine(): void;
/** Paths of the programs that a container engine of our own needs, by package. */
export const engineTools: ReadonlyMap<string, string>;
