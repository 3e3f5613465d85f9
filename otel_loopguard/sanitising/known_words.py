"""The words that are kept: those of conventions, protocols, providers, and what readers look for.

They are the words of all names and texts that the dialects, the rules on results and errors, and
the policy know, without the names of months; of Python's exceptions and HTTP's reasons; of
providers, packages and schemas. A test tells when a reader knows one that is not here.
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
a abort aborted aborts about acall accept acceptable accepted accepts act acted action active add
additional address adk advance after ag again against agent agentchat agents aggregated agno ai
ainvoke alert alerts allowed already also an and anext annotation annotations answer answered
answers anthropic any approved are args argument arguments arithmetic array article articles
assertion assistant association astream async at attribute attributes audio authentication
authoritative auto autogen available await awaits aws azure bad base batch bedrock below block
blocking blocklist blocks bool boolean broken buffer built builtin builtins by byte bytes cache
cached call called calling calls camel cancelled candidate candidates caret carets chain change
changes chat chatcmpl checked child choice choices chunk claimed claude client code cohere com
command compare complete completed completion completions complex config conflict conflicts
connection consecutive contain contains content contents context continue control conversation
core correlation cost could couldn count counts cpu create created creation crew crewai current
cursor custom customer customers cycle cyclic data date datetime day days debug decision
declaration declarations decode decorator decorators deepseek default definition definitions
delegate delegates delivery dependency deprecation depth description detail details detected
developer diagnostic diagnostics dialect dialects dict did didn diff diffs directory division do
document documentation documents dspy dt duplicate duplicates duration durationms early ed elapsed
element email emails embedding embeddings empty enabled encode encoding encountered end ended
ending endings enforce entity entries entry enum environment eof eos epoch errno error errorcode
errors eta event events evicted eviction evictions exceeded exception execute executing execution
exempt exist exists exit exp expectation expire expires expiry explicit extended extra fail failed
failure failures false fatal fc fetched field fields file files filter filtered final find finding
findings fingerprint finish finished fix flight flights float floating for forbidden found frame
framework frameworks from front frozenset fspath full function functions further future gap gaps
gateway gcp gemini gen genai generate generated generation generations generator getstate gmt go
gone google goroutine got graph groq group guardrail h handoff has hash hasmore have haystack
header hearing hidden high hint hints hits hm hook hotel hotels hour hours hr hrs http httpx human
i iat ibm id idempotency idle ids ignore im image implemented import in include includes
incomplete indentation index inference infinity info information input inputs instrumentation
instrumentations insufficient int integer internal interrupt interrupted intervened invalid
invocation invoke invoking io is iserror issue issues it item items iter iteration iterator its
java joined json jsonrpc kernel key keyboard keys keyword kind known kwargs label langchain
langgraph langsmith large last latency lc left legal len length limit limits line lines link links
list litellm live llama llamaindex llm local locked logprob logprobs long lookup loop loopguard
low m many mapping mark marks masked masking match matched matches matching max mcp media medium
member members memory merged message messages meta metadata method micro micros microsecond
microseconds milli millis millisecond milliseconds mime mimetype min mins minute minutes
misdirected missing mistake mistakes mistral mistralai mode model modified module more most moved
moving ms msec msecs msg multi multiple n na name named nan nano nanos nanosecond nanoseconds near
negotiate negotiates network next nextcursor nextpage nextpagetoken nfc nil no node nodes non
nonce none not nothing notice novel novelty now ns null num number object observe occurred
occurrence occurrences of offered offset ok ollama on one open openai openinference opening
openllmetry opentelemetry operation order orders org origin os other otlp outer output outputs
overflow page pages pagesize paper papers param parameter parameters params parent part partial
parties parts pass passed path pattern patterns payment pending per permanent permanently
permission perpage perplexity phase pid pipe place please point policy poll pp ppid pre
precondition prepare prevented previous price prices problem problems process processing product
products progress prohibited prompt properties protocol protocols provider proxy pydantic python q
queried query ran range raw read reason reasoning reasons received recent recitation record
records recursion redacted redirect reference references refusal refused reload reloads remain
remaining remains repeated replace replies reported request requested requestid requests required
reset resource resp responded response responses result results retrieved retry retryable return
returned revisited role root routine rows rule rules run running runs runtime s safety same
sampled sanitize satisfiable scalar schema schemas scope scopes script sdk search sec second
seconds secs see semantic sent sequence server service session set sha signal signature similar
since size skipped slot slots smolagent smolagents sorry sorted source span spans specified spii
split spoken stack stacktrace stagnation stamp stand stands started status statuscode stay stays
steer step steps still stop storage store str strand strands stream streaming string submit
success such supported surrogateescape surrogatepass swarm sweep switching syntax system t tab
taken task telemetry temporary term test tests text that the then there these thing thinking
thought thread threshold ticket tickets tier time timeout timestamp title to token tokens told too
took tookms tool tools total trace traceback traceloop traceparent tracer tracing translate tried
trip tripped true truncated trying ts tuple turn turns two type unauthorized unavailable unbound
unchanged unicode unknown unprocessable unset unsupported unsure until update updated upgrade
uptime uri url urllib us usage usd use used user users utc util utils uuid v value values variant
vercel version vertex vertexai vetoable vetoed video violation violations visit volatile
vulnerabilit vulnerabilities vulnerability waiting wall warn warning warnings was wasted watch
watched watsonx we weakref week weeks weight weights went were what while window with without word
words workflow wrapping write writes x xai yet yielded your z zero
"""

KNOWN_WORDS: Final = frozenset(_WORDS.split())
"""In lower case."""
