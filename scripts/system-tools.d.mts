/** Installs missing packages that the tests need, where that needs no password, and warns of those that stay missing. */
export function ensureSystemTools(): void;
/** Installs the tools of a run with the story on a container engine; the story reports the missing ones of `engineTools`. */
export function ensureSystemToolsAndEngine(): void;
/** Paths of the programs that a container engine of our own needs, by package. */
export const engineTools: ReadonlyMap<string, string>;
/** Paths of the programs that the tests on Podman need besides, by package. */
export const podmanTools: ReadonlyMap<string, string>;
