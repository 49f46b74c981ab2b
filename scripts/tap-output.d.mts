export function countsOf(tap: string): { readonly passed: number; readonly failed: number };
export function isWorthShowing(): (line: string) => boolean;
