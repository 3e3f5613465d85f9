"""Every attribute and event name that is read, each with what it means; our own: `registry`."""

from __future__ import annotations

# OpenTelemetry GenAI semantic conventions (0.1.0), with the older names that are still in use.
GEN_AI_OPERATION_NAME = "gen_ai.operation.name"  # what the span is: chat, execute_tool, ...
GEN_AI_PROVIDER_NAME = "gen_ai.provider.name"  # who serves the model
GEN_AI_SYSTEM = "gen_ai.system"  # the same, before 1.37
GEN_AI_REQUEST_MODEL = "gen_ai.request.model"  # the model that was asked for
GEN_AI_REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"  # how long the answer may be
GEN_AI_RESPONSE_MODEL = "gen_ai.response.model"  # the model that answered
GEN_AI_RESPONSE_ID = "gen_ai.response.id"  # what the provider calls the answer
GEN_AI_RESPONSE_FINISH_REASONS = "gen_ai.response.finish_reasons"  # why the answer ended
GEN_AI_RESPONSE_FINISH_REASON = "gen_ai.response.finish_reason"  # the same, Semantic Kernel
GEN_AI_AGENT_NAME = "gen_ai.agent.name"  # the agent that acts
GEN_AI_AGENT_CALL_ID = "gen_ai.agent.call.id"  # which invocation of the agent, Pydantic AI
GEN_AI_CONVERSATION_ID = "gen_ai.conversation.id"  # what the runs of one conversation share
GEN_AI_WORKFLOW_NAME = "gen_ai.workflow.name"  # the workflow, where it is no agent
GEN_AI_TOOL_NAME = "gen_ai.tool.name"  # the tool that is called
GEN_AI_TOOL_CALL_ID = "gen_ai.tool.call.id"  # links the call to the model's request for it
GEN_AI_TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"  # opt-in: JSON text or a structure
GEN_AI_TOOL_CALL_RESULT = "gen_ai.tool.call.result"  # opt-in: JSON text, text or a structure
GEN_AI_TOOL_DEFINITIONS = "gen_ai.tool.definitions"  # opt-in: the tools a model may call
GEN_AI_PREVIOUS_RESPONSE = "gen_ai.request.previous_response.id"  # the answer it goes on from
GEN_AI_INPUT_MESSAGES = "gen_ai.input.messages"  # opt-in: the whole conversation so far
GEN_AI_OUTPUT_MESSAGES = "gen_ai.output.messages"  # opt-in: what the model answered
GEN_AI_PROMPT = "gen_ai.prompt"  # the conversation, before 1.28; prefix of it, flattened
GEN_AI_COMPLETION = "gen_ai.completion"  # the answer, before 1.28; prefix of it, flattened
GEN_AI_AGGREGATED_USAGE = "gen_ai.aggregated_usage."  # stands for gen_ai.usage. where it is a sum
GEN_AI_USAGE_INPUT_TOKENS = "gen_ai.usage.input_tokens"  # includes cached ones
GEN_AI_USAGE_PROMPT_TOKENS = "gen_ai.usage.prompt_tokens"  # the same, before 1.28
GEN_AI_USAGE_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"  # includes reasoning
GEN_AI_USAGE_COMPLETION_TOKENS = "gen_ai.usage.completion_tokens"  # the same, before 1.28
GEN_AI_USAGE_CACHE_READ = "gen_ai.usage.cache_read.input_tokens"  # part of the input tokens
GEN_AI_USAGE_CACHE_READ_OLD = "gen_ai.usage.cache_read_input_tokens"  # the same, before 0.1.0
GEN_AI_USAGE_CACHE_WRITE = "gen_ai.usage.cache_write.input_tokens"  # part of the input tokens
GEN_AI_USAGE_CACHE_WRITE_OLD = "gen_ai.usage.cache_write_input_tokens"  # the same, Strands
GEN_AI_USAGE_CACHE_CREATION = "gen_ai.usage.cache_creation.input_tokens"  # the same, before 0.1.0
GEN_AI_USAGE_CACHE_CREATION_OLD = "gen_ai.usage.cache_creation_input_tokens"  # the same, older
GEN_AI_USAGE_REASONING = "gen_ai.usage.reasoning.output_tokens"  # part of the output tokens
GEN_AI_USAGE_REASONING_TRACELOOP = "gen_ai.usage.reasoning_tokens"  # the same, OpenLLMetry
GEN_AI_USAGE_REASONING_PYDANTIC = "gen_ai.usage.details.reasoning_tokens"  # the same, Pydantic AI
MCP_METHOD_NAME = "mcp.method.name"  # what a client asks of a server: tools/call, ...
ERROR_TYPE = "error.type"  # the class of what went wrong; `_OTHER` says nothing
EXCEPTION_EVENT = "exception"  # the span event of a raised exception
EXCEPTION_TYPE = "exception.type"  # its class
EXCEPTION_MESSAGE = "exception.message"  # its text
ANTHROPIC_TOOL_RESULT = "anthropic.tool_result.content"  # opt-in: result, the Anthropic SDK's spans
ANTHROPIC_TRUNCATED = "anthropic.content.truncated"  # content on the span was left out
ANTHROPIC_STOP_REASON = "anthropic.message.stop_reason"  # finish reason, the Anthropic SDK's spans
PYDANTIC_TOOL_ARGUMENTS = "tool_arguments"  # arguments, Pydantic AI format 2
PYDANTIC_TOOL_RESPONSE = "tool_response"  # result, Pydantic AI format 2
PYDANTIC_COST = "operation.cost"  # US dollars of one model call, Pydantic AI

# Messages as span events: the GenAI conventions before 1.37, and Strands in its own form.
EVENT_CONTENT = "gen_ai.event.content"  # attribute of such an event: the message, JSON text
SYSTEM_MESSAGE_EVENT = "gen_ai.system.message"  # an instruction in the conversation
USER_MESSAGE_EVENT = "gen_ai.user.message"  # a person's message in the conversation
ASSISTANT_MESSAGE_EVENT = "gen_ai.assistant.message"  # an answer of the model, earlier
TOOL_MESSAGE_EVENT = "gen_ai.tool.message"  # a tool's answer; on Strands' tool span its arguments
CHOICE_EVENT = "gen_ai.choice"  # what the model answered; on Strands' tool span the tool's result
PROMPT_EVENT = "gen_ai.content.prompt"  # holds gen_ai.prompt, before 1.28
COMPLETION_EVENT = "gen_ai.content.completion"  # holds gen_ai.completion, before 1.28
DETAILS_EVENT = "gen_ai.client.inference.operation.details"  # holds the messages' attributes

# Single frameworks and protocols.
ADK_TOOL_ARGUMENTS = "gcp.vertex.agent.tool_call_args"  # arguments, Google ADK's first schema
ADK_TOOL_RESPONSE = "gcp.vertex.agent.tool_response"  # result, Google ADK's first schema
ADK_EVENT_ID = "gcp.vertex.agent.event_id"  # what is made of an answer, Google ADK
ADK_REQUEST = "gcp.vertex.agent.llm_request"  # a model's whole request, Google ADK's first schema
ADK_RESPONSE = "gcp.vertex.agent.llm_response"  # its whole answer, Google ADK's first schema
AG2_RESULT_TRUNCATED = "ag2.tool.call.result.truncated"  # the result on the span was cut
AGENT_FRAMEWORK_WORKFLOW_NAME = "workflow.name"  # the workflow, Microsoft's Agent Framework
CLAUDE_TOOL_NAME = "tool_name"  # the tool with its server, Claude Code
CLAUDE_TOOL_INPUT = "tool_input"  # opt-in: arguments, Claude Code
CLAUDE_COMMAND = "full_command"  # opt-in: what the tool Bash runs, Claude Code
CLAUDE_OUTPUT_EVENT = "tool.output"  # opt-in: the span event with what a tool came to, Claude Code

# OpenInference semantic conventions (Arize).
OPENINFERENCE_SPAN_KIND = "openinference.span.kind"  # LLM, TOOL, AGENT, CHAIN, ...
OPENINFERENCE_SESSION_ID = "session.id"  # what the runs of one conversation share
OPENINFERENCE_AGENT_NAME = "agent.name"  # the agent that acts
OPENINFERENCE_NODE_NAME = "graph.node.name"  # a node of the agents' graph
OPENINFERENCE_NODE_ID = "graph.node.id"  # the same; a name in most packages
OPENINFERENCE_INPUT_VALUE = "input.value"  # a tool's arguments, a model's whole request
OPENINFERENCE_OUTPUT_VALUE = "output.value"  # a tool's result, a model's whole answer
OPENINFERENCE_TOOL_NAME = "tool.name"  # the tool that is called
OPENINFERENCE_TOOL_ID = "tool.id"  # the call's id, Google ADK and the Claude Agent SDK
OPENINFERENCE_TOOL_CALL_ID = "tool_call.id"  # the call's id, Pydantic AI
LLM_MODEL_NAME = "llm.model_name"  # the model
LLM_PROVIDER = "llm.provider"  # who serves the model
LLM_SYSTEM = "llm.system"  # whose model it is
LLM_FINISH_REASON = "llm.finish_reason"  # why the answer ended
LLM_INVOCATION_PARAMETERS = "llm.invocation_parameters"  # JSON: how the model was asked
LLM_INPUT_MESSAGES = "llm.input_messages"  # prefix of the flattened input
LLM_OUTPUT_MESSAGES = "llm.output_messages"  # prefix of the flattened answer
LLM_TOOLS = "llm.tools"  # prefix of the flattened tools a model may call
LLM_COST_TOTAL = "llm.cost.total"  # US dollars of one model call
LLM_TOKENS_PROMPT = "llm.token_count.prompt"  # includes cached ones
LLM_TOKENS_COMPLETION = "llm.token_count.completion"  # includes reasoning
LLM_TOKENS_CACHE_READ = "llm.token_count.prompt_details.cache_read"  # part of the prompt
LLM_TOKENS_CACHE_WRITE = "llm.token_count.prompt_details.cache_write"  # part of the prompt
LLM_TOKENS_REASONING = "llm.token_count.completion_details.reasoning"  # part of the completion

# OpenLLMetry (Traceloop).
TRACELOOP_SPAN_KIND = "traceloop.span.kind"  # workflow, agent, tool or task
TRACELOOP_ENTITY_NAME = "traceloop.entity.name"  # the workflow, agent, tool or task
TRACELOOP_ENTITY_INPUT = "traceloop.entity.input"  # what it was called with, JSON
TRACELOOP_ENTITY_OUTPUT = "traceloop.entity.output"  # what it returned, JSON
TRACELOOP_WORKFLOW_NAME = "traceloop.workflow.name"  # the workflow around it
TRACELOOP_SESSION_ID = "traceloop.association.properties.session_id"  # the conversation
TRACELOOP_THREAD_ID = "traceloop.association.properties.thread_id"  # the same, LangGraph
TRACELOOP_CREW_USAGE = "crewai.crew.token_usage"  # text: what a whole crew has used, CrewAI
TRACELOOP_TASK_TOOL = "tool.name"  # on a task: the tool that it calls, LlamaIndex
TRACELOOP_TASK_ARGUMENTS = "tool.arguments"  # its arguments
LLM_REQUEST_TYPE = "llm.request.type"  # what the span is, before gen_ai.operation.name
TRACELOOP_FUNCTIONS = "llm.request.functions"  # prefix of the tools a model may call, then

# LangSmith's export to OpenTelemetry, which has GenAI names as well.
LANGSMITH_SPAN_KIND = "langsmith.span.kind"  # llm, tool, chain, ...
LANGSMITH_AGENT_NAME = "langsmith.metadata.lc_agent_name"  # the agent that acts, LangChain
LANGSMITH_SESSION_ID = "langsmith.metadata.session_id"  # what the runs of one conversation share
LANGSMITH_THREAD_ID = "langsmith.metadata.thread_id"  # the same, LangGraph
LANGSMITH_USAGE = "langsmith.metadata.usage_metadata"  # JSON: tokens with their details
LANGSMITH_INPUT = "gen_ai.prompt"  # JSON: a tool's arguments, a model's whole request
LANGSMITH_OUTPUT = "gen_ai.completion"  # JSON: a tool's result, a model's whole answer

# Vercel AI SDK, versions 4 to 6, and 7 with its legacy telemetry.
AI_OPERATION_ID = "ai.operationId"  # ai.generateText, ai.generateText.doGenerate, ai.toolCall, ...
AI_FUNCTION_ID = "ai.telemetry.functionId"  # what the application calls the function
AI_SESSION_ID = "ai.telemetry.metadata.sessionId"  # the conversation, as applications call it
AI_MODEL_ID = "ai.model.id"  # the model that was asked for
AI_MODEL_PROVIDER = "ai.model.provider"  # who serves the model, and by which API
AI_PROMPT_MESSAGES = "ai.prompt.messages"  # JSON: a model's input
AI_PROMPT_TOOLS = "ai.prompt.tools"  # the tools a model may call, JSON texts
AI_RESPONSE_ID = "ai.response.id"  # what the provider calls the answer
AI_RESPONSE_MODEL = "ai.response.model"  # the model that answered
AI_RESPONSE_FINISH_REASON = "ai.response.finishReason"  # why the answer ended
AI_RESPONSE_TEXT = "ai.response.text"  # the text of the answer
AI_RESPONSE_OBJECT = "ai.response.object"  # JSON: the answer of generateObject
AI_RESPONSE_TOOL_CALLS = "ai.response.toolCalls"  # JSON: the calls that the answer asks for
AI_TOOL_CALL_NAME = "ai.toolCall.name"  # the tool that is called
AI_TOOL_CALL_ID = "ai.toolCall.id"  # links the call to the model's request for it
AI_TOOL_CALL_ARGS = "ai.toolCall.args"  # JSON
AI_TOOL_CALL_RESULT = "ai.toolCall.result"  # JSON
AI_USAGE_INPUT = "ai.usage.inputTokens"  # includes cached ones; on the root of all its calls
AI_USAGE_INPUT_OLD = "ai.usage.promptTokens"  # the same, version 4
AI_USAGE_OUTPUT = "ai.usage.outputTokens"  # includes reasoning
AI_USAGE_OUTPUT_OLD = "ai.usage.completionTokens"  # the same, version 4
AI_USAGE_CACHE_READ = "ai.usage.inputTokenDetails.cacheReadTokens"  # part of the input
AI_USAGE_CACHE_READ_OLD = "ai.usage.cachedInputTokens"  # the same, version 5
AI_USAGE_CACHE_WRITE = "ai.usage.inputTokenDetails.cacheWriteTokens"  # part of the input
AI_USAGE_REASONING = "ai.usage.outputTokenDetails.reasoningTokens"  # part of the output
AI_USAGE_REASONING_OLD = "ai.usage.reasoningTokens"  # the same, version 5

# Haystack's own spans.
HAYSTACK_TOOL_NAME = "haystack.tool.name"  # the tool that is called
HAYSTACK_TOOL_ERROR = "haystack.tool.error"  # whether the tool failed
HAYSTACK_TOOL_INPUT = "haystack.agent.step.tool.input"  # opt-in: JSON
HAYSTACK_TOOL_OUTPUT = "haystack.agent.step.tool.output"  # opt-in: text, or JSON with `error`
HAYSTACK_MODEL_INPUT = "haystack.agent.step.llm.input"  # opt-in: JSON, messages and tools
HAYSTACK_MODEL_OUTPUT = "haystack.agent.step.llm.output"  # opt-in: JSON, replies with usage
