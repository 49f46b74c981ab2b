/** Installs missing packages that the tests need, where that needs no password, and warns of those that stay missing. */
export function ensureSystemTools(): void;
